import type { Item } from "../../api/types";
import type { IconName } from "../../components/sprite";
import type { Colour } from "../../lib/states";

type Worker = Item<"/workers">;

interface StateWords {
  word: string;
  icon: IconName;
  colour: Colour | "warn";
}

export function isStopped(worker: Worker): boolean {
  return worker.stoppedAt !== null;
}

// What is the matter with a worker, in words; null if nothing is.
export function troubleOf(worker: Worker): string | null {
  if (isStopped(worker)) return null;
  if (worker.isLost) return "its lease ran out";
  const trouble = worker.trouble as Record<string, unknown> | null;
  if (trouble === null || Object.keys(trouble).length === 0) return null;
  return Object.values(trouble).map(String).join(", ");
}

export function stateOf(worker: Worker): StateWords {
  if (isStopped(worker)) {
    const isLost = worker.state === "lost";
    return {
      word: isLost ? "Lost" : "Stopped",
      icon: isLost ? "octagon-cross" : "circle-slash",
      colour: isLost ? "failed" : "rest",
    };
  }
  if (worker.isLost) return { word: "Lost", icon: "octagon-cross", colour: "failed" };
  if (troubleOf(worker) !== null) return { word: "Cannot start processes", icon: "octagon-cross", colour: "failed" };
  if (worker.state === "draining") return { word: "Draining", icon: "pause", colour: "warn" };
  if (worker.busy > 0) return { word: "Busy", icon: "disc-play", colour: "running" };
  return { word: "Idle", icon: "dash", colour: "rest" };
}

export function poolOf(worker: Worker): string {
  const pool = (worker.offers as { pool?: unknown }).pool;
  return typeof pool === "string" && pool !== "" ? pool : "default";
}

// Tags and resources: "eu, gpu=1".
export function offersOf(worker: Worker): string {
  const { tags = [], resources = {} } = worker.offers as { tags?: string[]; resources?: Record<string, number> };
  return [...tags, ...Object.entries(resources).map(([name, amount]) => `${name}=${amount}`)].join(", ");
}
