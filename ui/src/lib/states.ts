import marks from "../../../src/rota/views/state_marks.json";

export type Status = keyof typeof marks.states;
export type Colour = keyof typeof marks.colours;

export interface Mark {
  word: string;
  meaning: string;
  icon: string;
  colour: Colour;
  mark: string;
}

export const STATUSES = Object.keys(marks.states) as Status[];
export const ENDED: readonly Status[] = ["success", "failed", "cancelled", "skipped"];

const UNKNOWN: Mark = { word: "", meaning: "", icon: "dash", colour: "rest", mark: "thin" };

// A server that is newer than the page may know states that the page does not.
export function markOf(status: string): Mark {
  const found = (marks.states as Record<string, Omit<Mark, "colour"> & { colour: string }>)[status];
  return found ? { ...found, colour: found.colour as Colour } : { ...UNKNOWN, word: capitalised(status) };
}

export function hasEnded(status: string): boolean {
  return (ENDED as readonly string[]).includes(status);
}

function capitalised(text: string): string {
  const words = text.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
