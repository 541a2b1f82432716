import { count, plural } from "../../../lib/format";
import type { ExecutionFilter } from "../filter";

export type Verb = "cancel" | "replay" | "discard";

// Some executions by their ids, or all that a filter finds up to a moment.
export type Target = { ids: readonly string[] } | { filter: ExecutionFilter; asOf: string };

interface Words {
  name: string;
  // "Replayed 409 of 412."
  done: string;
  // "Not replayed"
  failed: string;
  keep: string;
}

export const WORDS: Record<Verb, Words> = {
  cancel: { name: "Cancel", done: "Cancelled", failed: "Not cancelled", keep: "Keep running" },
  replay: { name: "Replay", done: "Replayed", failed: "Not replayed", keep: "Keep them" },
  discard: { name: "Discard", done: "Discarded", failed: "Not discarded", keep: "Keep them" },
};

export interface Outcome {
  done: number;
  total: number;
  // Why the first of the others was refused.
  refusal: string | null;
  isStopped?: boolean;
}

// "Replayed 409 of 412. 3 were refused: queue payments is full (5,000)."
export function outcomeWords(verb: Verb, { done, total, refusal, isStopped = false }: Outcome): string {
  const name = WORDS[verb].done;
  if (isStopped) return `Stopped. ${name} ${count(done)} of ${count(total)}.`;
  if (done === total) return `${name} ${count(done)}.`;
  const left = total - done;
  const why = refusal === null ? "had already changed" : `${left === 1 ? "was" : "were"} refused: ${refusal}`;
  return `${name} ${count(done)} of ${count(total)}. ${count(left)} ${why}.`.replace(/\.\.$/, ".");
}

export function titleOf(verb: Verb, number: number, isDead: boolean): string {
  const what = isDead ? plural(number, "dead letter") : plural(number, "execution");
  return `${WORDS[verb].name} ${what}?`;
}
