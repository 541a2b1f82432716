// A Python traceback as text, taken apart: frames with their source, and whose code each one is.

import type { Excerpt } from "./attempt";

export interface Frame {
  file: string;
  line: number;
  name: string;
  // The line itself, and where they are known those around it.
  source: readonly SourceLine[];
  // The package that it belongs to; null for the user's own code.
  library: string | null;
}

export interface SourceLine {
  line: number;
  text: string;
}

export interface Section {
  frames: Frame[];
  // "During handling of the above exception, another exception occurred:", before the section.
  link: string | null;
  // The class and message of an exception that was not the last one.
  error: string | null;
}

const FRAME = /^ {2}File "(.*)", line (\d+), in (.*)$/;
const LINK = /^(During handling of the above exception|The above exception was the direct cause)/;

export function sectionsOf(text: string, excerpts: readonly Excerpt[]): Section[] {
  const sections: Section[] = [{ frames: [], link: null, error: null }];
  let isAfterFrame = false;
  for (const line of text.split("\n")) {
    const current = sections.at(-1);
    if (current === undefined) break;
    const found = FRAME.exec(line);
    if (found !== null) {
      const [, file = "", number = "0", name = ""] = found;
      const source = around(excerpts, file, Number(number));
      current.frames.push({ file, line: Number(number), name, source, library: libraryOf(file) });
      isAfterFrame = true;
    } else if (LINK.test(line)) {
      sections.push({ frames: [], link: line, error: null });
      isAfterFrame = false;
    } else if (isAfterFrame && line.startsWith("    ")) {
      const frame = current.frames.at(-1);
      if (frame !== undefined && frame.source.length === 0 && !/^[\s^~]+$/.test(line))
        frame.source = [{ line: frame.line, text: line.trim() }];
    } else if (line.trim() !== "" && !line.startsWith("Traceback ") && !line.startsWith("  ")) {
      current.error = current.error === null ? line : `${current.error}\n${line}`;
      isAfterFrame = false;
    }
  }
  return sections.filter((section) => section.frames.length > 0 || section.error !== null);
}

// Without the indentation that all of the lines have.
function around(excerpts: readonly Excerpt[], file: string, line: number): SourceLine[] {
  const found = excerpts.find((one) => one.file === file && one.line === line);
  if (found === undefined) return [];
  const filled = found.lines.filter((text) => text.trim() !== "");
  const indent = Math.min(...filled.map((text) => text.length - text.trimStart().length));
  return found.lines.map((text, index) => ({ line: found.first + index, text: text.slice(indent) }));
}

const INSTALLED = /\/(?:site|dist)-packages\/([^/]+)/;
const STANDARD = /\/lib\/python3[^/]*\/([^/]+)/;

function libraryOf(file: string): string | null {
  if (file.startsWith("<frozen")) return "Python";
  const path = file.replaceAll("\\", "/");
  const name = INSTALLED.exec(path)?.[1] ?? STANDARD.exec(path)?.[1];
  return name === undefined ? null : name.replace(/\.py$/, "");
}

export type Part = { kind: "own"; frame: Frame } | { kind: "library"; library: string; frames: Frame[] };

// Frames of one package that follow each other are one part.
export function partsOf(frames: readonly Frame[]): Part[] {
  const parts: Part[] = [];
  for (const frame of frames) {
    const last = parts.at(-1);
    if (frame.library === null) parts.push({ kind: "own", frame });
    else if (last?.kind === "library" && last.library === frame.library) last.frames.push(frame);
    else parts.push({ kind: "library", library: frame.library, frames: [frame] });
  }
  return parts;
}

// shop/payments.py of /srv/app/shop/payments.py.
export function shortFile(file: string): string {
  return file.replaceAll("\\", "/").split("/").slice(-2).join("/");
}
