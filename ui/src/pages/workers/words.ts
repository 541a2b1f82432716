import type { Item } from "../../api/types";
import type { IconName } from "../../components/sprite";
import { plural } from "../../lib/format";
import type { Colour } from "../../lib/states";

export type Worker = Item<"/workers">;

interface StateWords {
  word: string;
  icon: IconName;
  colour: Colour | "warn";
}

// So many late heartbeats of the last 40 are trouble; one alone is not.
const LEAST_LATE = 2;

// The state says it already.
const SAID = /^(can start no process for [^:]*|stands still): /;

export function isStopped(worker: Worker): boolean {
  return worker.stoppedAt !== null;
}

// Each one is a digit: by how many periods the heartbeat came late.
export function lateBeats(worker: Worker): number {
  return [...worker.heartbeats].filter((beat) => beat !== "0").length;
}

// What is the matter with a worker, in words; null if nothing is.
export function troubleOf(worker: Worker): string | null {
  if (isStopped(worker)) return null;
  if (worker.isLost) return "its lease ran out";
  if (worker.troubleText !== null) return worker.troubleText.replace(SAID, "");
  const late = lateBeats(worker);
  if (late < LEAST_LATE) return null;
  return `${late} of the last ${worker.heartbeats.length} heartbeats were late: its machine or the database is overloaded`;
}

export function stateOf(worker: Worker): StateWords {
  if (isStopped(worker)) {
    if (worker.state === "lost") return { word: "Lost", icon: "octagon-cross", colour: "failed" };
    return { word: "Stopped", icon: "circle-slash", colour: "rest" };
  }
  if (worker.isLost) return { word: "Lost", icon: "octagon-cross", colour: "failed" };
  if (worker.troubleText?.startsWith("stands still"))
    return { word: "Stands still", icon: "octagon-cross", colour: "failed" };
  if (worker.troubleText !== null) return { word: "Cannot start processes", icon: "octagon-cross", colour: "failed" };
  if (worker.state === "draining") return { word: "Draining", icon: "pause", colour: "warn" };
  if (lateBeats(worker) >= LEAST_LATE) return { word: "Late heartbeat", icon: "triangle", colour: "warn" };
  if (worker.busy > 0) return { word: "Busy", icon: "disc-play", colour: "running" };
  return { word: "Idle", icon: "dash", colour: "rest" };
}

interface Offers {
  pools?: string[];
  tags?: string[];
  resources?: Record<string, number>;
  everything?: boolean;
}

function poolsOf(worker: Worker): string[] {
  const { pools = [] } = worker.offers as Offers;
  return pools.length === 0 ? ["default"] : pools;
}

// The pools of a worker that no other live worker of its app offers.
export function lastOf(worker: Worker, all: readonly Worker[]): string[] {
  const others = all.filter(
    (other) =>
      other.workerId !== worker.workerId &&
      (other.app === worker.app || other.app === "*") &&
      !isStopped(other) &&
      !other.isLost &&
      other.state !== "draining",
  );
  if ((worker.offers as Offers).everything || others.some((other) => (other.offers as Offers).everything)) return [];
  return poolsOf(worker).filter((pool) => !others.some((other) => poolsOf(other).includes(pool)));
}

export function poolOf(worker: Worker): string {
  const { pools = [], everything = false } = worker.offers as Offers;
  return everything ? "all" : pools.join(", ") || "default";
}

// Tags and resources: "eu, gpu=1".
export function offersOf(worker: Worker): string {
  const { tags = [], resources = {} } = worker.offers as Offers;
  return [...tags, ...Object.entries(resources).map(([name, amount]) => `${name}=${amount}`)].join(", ");
}

// What became of the executions that a worker held when it stopped.
export function endedInWords(worker: Worker): string {
  const ended = worker.ended;
  if (ended === null) return worker.state === "lost" ? "what it held is not known" : "finished what it held";
  if (ended.held === 0) return "held nothing";
  const parts = [
    ended.returned === 0
      ? null
      : ended.returned === ended.held
        ? "all given to others"
        : `${ended.returned} given to others`,
    ended.failed === 0 ? null : `${ended.failed} failed`,
  ].filter((part) => part !== null);
  return `held ${plural(ended.held, "execution")}${parts.length === 0 ? "" : `, ${parts.join(", ")}`}`;
}
