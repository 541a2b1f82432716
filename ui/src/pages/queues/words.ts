import type { Answer } from "../../api/types";
import type { IconName } from "../../components/sprite";
import { age, count } from "../../lib/format";
import type { Colour } from "../../lib/states";

export type Outlook = Answer<"/outlook">["queues"][number];

interface StateWords {
  word: string;
  icon: IconName;
  colour: Colour | "warn";
  isQuiet: boolean;
}

export function stateOf(queue: Outlook): StateWords {
  if (queue.state === "paused") return { word: "Paused", icon: "pause", colour: "warn", isQuiet: false };
  if (queue.state === "no_worker")
    return { word: "No worker", icon: "octagon-cross", colour: "failed", isQuiet: false };
  if (queue.queued === 0 && queue.waits.some((wait) => wait.kind === "job_paused"))
    return { word: "Job paused", icon: "pause", colour: "warn", isQuiet: false };
  return { word: "Active", icon: "tick", colour: "success", isQuiet: true };
}

// When the queue will be empty, in a word or a length: "now", "4 min", "growing"; a dash if that is not known.
export function emptyIn(queue: Outlook): string {
  if (isHeld(queue)) return "—";
  if (queue.outlook === "empties" && queue.emptyInS !== null) return age(queue.emptyInS);
  return queue.outlook === "unknown" ? "—" : queue.outlook;
}

// The same where no column has a head: "growing", "empty in 4 min". Nothing where the state or the number says it.
export function outlookWords(queue: Outlook): string {
  if (queue.outlook === "growing") return "growing";
  return queue.outlook === "empties" && queue.emptyInS !== null ? `empty in ${age(queue.emptyInS)}` : "";
}

// Whether executions wait, and none of them for a slot.
function isHeld(queue: Outlook): boolean {
  return queue.outlook === "now" && queue.queued === 0 && queue.waiting > 0;
}

// How many wait for something other than a slot, and for what: "25 wait: job charge is paused".
export function waitsInWords(queue: Pick<Outlook, "waiting" | "waits">): string | null {
  if (queue.waiting === 0) return null;
  const reasons = [...new Set(queue.waits.map((wait) => wait.text))];
  const more = reasons.length > 2 ? `; ${count(reasons.length - 2)} more reasons` : "";
  const why = reasons.length === 0 ? "" : `: ${reasons.slice(0, 2).join("; ")}${more}`;
  return `${count(queue.waiting)} ${queue.waiting === 1 ? "waits" : "wait"}${why}`;
}

// The forecast as a sentence.
export function forecastOf(queue: Outlook): string {
  switch (queue.outlook) {
    case "paused":
      return queue.ifResumedS === null
        ? "Nothing starts until it is resumed"
        : `About ${age(queue.ifResumedS)} to work off once it is resumed`;
    case "never":
      return "No worker can run what waits";
    case "unknown":
      return "Not known: too few have ended lately";
    case "growing":
      return "More arrive than end: it grows";
    case "empties":
      return queue.emptyInS === null ? "It becomes shorter" : `Empty in about ${age(queue.emptyInS)}`;
    default:
      if (isHeld(queue)) return "Not known: nothing is ready to start";
      return queue.queued === 0 ? "Nothing waits" : "What waits starts at once";
  }
}

// Those that need a look first; then by name, so that rows keep their places.
export function byNeed(one: Outlook, other: Outlook): number {
  return needOf(one) - needOf(other) || one.name.localeCompare(other.name);
}

function needOf(queue: Outlook): number {
  if (queue.state === "no_worker") return 0;
  if (queue.outlook === "growing") return 1;
  if (queue.state === "paused") return 2;
  return queue.queued > 0 || queue.waiting > 0 ? 3 : 4;
}
