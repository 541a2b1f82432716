import type { Answer } from "../../../api/types";

export type LogLine = Answer<"/executions/{execution}/logs">["items"][number];

export type Level = "error" | "warning" | null;

export function levelOf(line: LogLine): Level {
  if (/^(ERROR|CRITICAL|FATAL)\b/.test(line.text)) return "error";
  if (/^WARN(ING)?\b/.test(line.text)) return "warning";
  if (line.stream !== "rota") return null;
  return /\bfailed\b/.test(line.text) ? "error" : isGap(line) ? "warning" : null;
}

// What Rota writes where lines of a log above `max_log_bytes` are missing.
function isGap(line: LogLine): boolean {
  return line.stream === "rota" && /left out here|^\(max_log_bytes/.test(line.text);
}

// How many lines are missing, and the number of the last one before them.
export function leftOut(lines: readonly LogLine[]): { count: number; after: number } | null {
  let found: { count: number; after: number } | null = null;
  lines.forEach((line, index) => {
    const before = lines[index - 1];
    if (before === undefined || before.fence !== line.fence || !isGap(line)) return;
    const missing = line.line - before.line;
    if (missing > 1) found = { count: (found?.count ?? 0) + missing, after: found?.after ?? before.line };
  });
  return found;
}

// A row of the viewer: a line, or the head of an attempt.
export type Row = { kind: "line"; line: LogLine } | { kind: "head"; fence: number; key: string };

export function rowsOf(
  lines: readonly LogLine[],
  { fence, stream }: { fence: number | null; stream: string | null },
): Row[] {
  const rows: Row[] = [];
  let last = 0;
  for (const line of lines) {
    if ((fence !== null && line.fence !== fence) || (stream !== null && line.stream !== stream)) continue;
    if (line.fence !== last) rows.push({ kind: "head", fence: line.fence, key: `head ${line.fence}` });
    last = line.fence;
    rows.push({ kind: "line", line });
  }
  return rows;
}

export const LINE = 18;
export const HEAD = 22;

// Where each row begins, in pixels; one more entry than rows. Heights are computed, never measured, so nothing jumps.
export function topsOf(rows: readonly Row[], across: number | null): Float64Array {
  const tops = new Float64Array(rows.length + 1);
  rows.forEach((row, index) => {
    tops[index + 1] = (tops[index] ?? 0) + (row.kind === "head" ? HEAD : LINE * rowsAcross(row.line.text, across));
  });
  return tops;
}

function rowsAcross(text: string, across: number | null): number {
  return across === null ? 1 : Math.max(1, Math.ceil(widthOf(text) / across));
}

// Characters of two columns, such as Chinese ones, and tabs take more room.
const WIDE =
  /[\t\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\ud83c-\ud83e][\udc00-\udfff]/;

export function widthOf(text: string): number {
  if (!WIDE.test(text)) return text.length;
  let width = 0;
  for (const one of text) width += one === "\t" ? 8 - (width % 8) : WIDE.test(one) ? 2 : 1;
  return width;
}

// The last row that begins at or before a pixel.
export function rowAt(tops: Float64Array, pixel: number): number {
  let low = 0;
  let high = Math.max(0, tops.length - 2);
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((tops[middle] ?? 0) <= pixel) low = middle;
    else high = middle - 1;
  }
  return low;
}
