let found: number | null = null;

// The width of a character of the log, of which all have the same.
export function charWidth(): number {
  if (found !== null) return found;
  const pen = document.createElement("canvas").getContext("2d");
  if (pen === null) return 7.2;
  pen.font = `12px ${getComputedStyle(document.documentElement).getPropertyValue("--mono")}`;
  found = pen.measureText("0".repeat(100)).width / 100;
  return found;
}
