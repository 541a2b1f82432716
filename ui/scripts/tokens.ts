import { readFileSync } from "node:fs";
import type { Plugin } from "vite";

// The style sheet of all colours, made from the file that the command line and the docs read as well.

interface Pair {
  light: string;
  dark: string;
}

interface Marks {
  tokens: Record<string, Pair>;
  colours: Record<string, Pair & { tint: Pair }>;
}

const FILE = new URL("../../src/rota/views/state_marks.json", import.meta.url);
const NAME = "virtual:tokens.css";
// An inverted surface needs a little more contrast for two of the colours.
const INVERTED = { light: { rest: "#8b939d" }, dark: { retrying: "#a86f00", rest: "#68727c" } };

type Theme = keyof Pair;

function themed(marks: Marks, theme: Theme): string {
  const lines = Object.entries(marks.tokens).map(([name, pair]) => `--${name}:${pair[theme]};`);
  for (const [name, colour] of Object.entries(marks.colours)) {
    lines.push(`--${name}:${colour[theme]};`, `--t-${name}:${colour.tint[theme]};`);
  }
  const isDark = theme === "dark";
  lines.push(
    `--scrim:${isDark ? "rgb(0 0 0/.55)" : "rgb(20 24 28/.32)"};`,
    isDark
      ? "--shadow:0 12px 40px rgb(0 0 0/.6),0 0 0 1px #3d454d;"
      : "--shadow:0 12px 40px rgb(20 24 28/.22),0 2px 6px rgb(20 24 28/.12);",
    `color-scheme:${theme};`,
  );
  return lines.join("");
}

function inverted(marks: Marks, theme: Theme): string {
  const other: Theme = theme === "light" ? "dark" : "light";
  const colours = Object.entries(marks.colours).map(([name, colour]) => [name, colour[other]]);
  const own = { ...Object.fromEntries(colours), ...INVERTED[theme] };
  const lines = Object.entries(own).map(([name, value]) => `--${name}:${value};`);
  lines.push(`--panel:${marks.tokens.ink?.[theme]};`, `--fill-2:${marks.tokens["line-2"]?.[other]};`);
  return lines.join("");
}

function sheet(): string {
  const marks: Marks = JSON.parse(readFileSync(FILE, "utf-8"));
  const light = [`:root{${themed(marks, "light")}}`, `.inverted{${inverted(marks, "light")}}`];
  const dark = (root: string) => [`${root}{${themed(marks, "dark")}}`, `${root} .inverted{${inverted(marks, "dark")}}`];
  return [
    ...light,
    `@media(prefers-color-scheme:dark){${dark(":root:not([data-theme=light])").join("")}}`,
    ...dark(":root[data-theme=dark]"),
  ].join("\n");
}

export function tokens(): Plugin {
  return {
    name: "rota-tokens",
    resolveId: (id) => (id === NAME ? `\0${NAME}` : undefined),
    load(id) {
      if (id !== `\0${NAME}`) return undefined;
      this.addWatchFile(FILE.pathname);
      return sheet();
    },
  };
}
