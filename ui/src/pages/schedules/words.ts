import type { Item } from "../../api/types";
import type { TickKind } from "../../components/DayStrip";
import type { IconName } from "../../components/sprite";
import { isIcon } from "../../components/sprite";
import { duration, plural, secondsBetween } from "../../lib/format";
import { type Colour, markOf } from "../../lib/states";

export type Schedule = Item<"/schedules">;
export type Tick = Item<"/ticks">;
export type Entry = Item<"/schedules/{schedule}/ticks">;

export interface Words {
  word: string;
  icon: IconName;
  colour: Colour | "warn";
  isQuiet?: boolean;
}

const MISSED: readonly string[] = ["missed", "outside_window", "unknown_job"];
const LEFT_OUT: readonly string[] = ["paused", "excluded", "dst_gap"];
// Outcomes of ticks that started nothing.
export const NOT_RUN = ["overlap", "missed", "outside_window", "unknown_job", "paused", "excluded", "dst_gap"] as const;

export function kindOf(tick: Pick<Tick, "outcome" | "status" | "executionId">): TickKind {
  if (MISSED.includes(tick.outcome)) return "missed";
  if (LEFT_OUT.includes(tick.outcome)) return "left-out";
  if (tick.outcome === "overlap") return "overlap";
  if (tick.outcome === "planned" || tick.outcome === "queued") return "to-come";
  if (tick.status === "failed") return "failed";
  if (tick.status === "success") return "ran";
  return tick.status === "cancelled" || tick.status === "skipped" ? "left-out" : "runs";
}

const OUTCOMES: Record<string, Words> = {
  overlap: { word: "Overlap", icon: "triangle", colour: "warn" },
  missed: { word: "Missed", icon: "octagon-cross", colour: "failed" },
  outside_window: { word: "Missed", icon: "octagon-cross", colour: "failed" },
  unknown_job: { word: "No such job", icon: "octagon-cross", colour: "failed" },
  paused: { word: "Paused", icon: "pause", colour: "warn" },
  excluded: { word: "Excluded", icon: "dash", colour: "rest" },
  dst_gap: { word: "No such time", icon: "dash", colour: "rest" },
  queued: { word: "Waits", icon: "hourglass", colour: "rest" },
  planned: { word: "To come", icon: "clock", colour: "rest" },
};

// The state of its execution if it started one, else its own outcome.
export function outcomeWords(outcome: string, status: string | null): Words {
  const known = OUTCOMES[outcome];
  if (known !== undefined) return known;
  const mark = markOf(status ?? "running");
  return {
    word: mark.word,
    icon: isIcon(mark.icon) ? mark.icon : "dash",
    colour: mark.colour,
    isQuiet: status === "success",
  };
}

// Why a tick did not run, or how late it started. `before` is the time of the run that was in its way.
export function whyWords(entry: Entry, before: string | null): string {
  const late = secondsBetween(entry.at, entry.decidedAt);
  const words: Record<string, string> = {
    overlap: `the run ${before === null ? "before it" : `of ${before}`} had not ended`,
    missed: "no worker was there, and the schedule does not catch up",
    outside_window: "it was missed for longer than the schedule catches up",
    unknown_job: "no worker has registered the job",
    paused: "the schedule was paused",
    excluded: "the calendar excludes the day",
    dst_gap: "clocks were put forward over this time",
    queued: "it starts when the run before it has ended",
    caught_up: `caught up, ${duration(late)} late`,
    backfilled: "started by a backfill",
  };
  return words[entry.outcome] ?? (late < 0.05 ? "on time" : `${duration(late)} late`);
}

export type Trouble = "overlaps" | "failed" | "missed" | "is late";

export function troubleOf({ paused, isOverdue, lastTick }: Schedule): Trouble | null {
  if (paused !== null) return null;
  if (isOverdue) return "is late";
  if (lastTick === null) return null;
  if (lastTick.outcome === "overlap" || lastTick.outcome === "queued") return "overlaps";
  if (lastTick.status === "failed") return "failed";
  return MISSED.includes(lastTick.outcome ?? "") ? "missed" : null;
}

// The cell "last tick". `ticks` are those of the schedule on screen, oldest first.
export function lastWords(schedule: Schedule, ticks: readonly Tick[]): Words | null {
  const { paused, isOverdue, lastTick } = schedule;
  if (paused !== null) return { word: "Paused", icon: "pause", colour: "warn" };
  if (isOverdue) return { word: "Late", icon: "triangle", colour: "warn" };
  if (lastTick === null) return null;
  if (lastTick.outcome === "overlap") {
    const number = overlapsOf(ticks);
    return { word: number > 1 ? plural(number, "overlap") : "Overlap", icon: "triangle", colour: "warn" };
  }
  if (lastTick.outcome !== null && lastTick.outcome in OUTCOMES) return outcomeWords(lastTick.outcome, null);
  if (lastTick.status === "success") {
    const late = lastTick.lateBy ?? 0;
    return { word: late > 60 ? `${duration(late)} late` : "On time", icon: "tick", colour: "success", isQuiet: true };
  }
  return outcomeWords("fired", lastTick.status);
}

// How many ticks in a row overlapped, up to now.
function overlapsOf(ticks: readonly Tick[]): number {
  let number = 0;
  for (const tick of [...ticks].reverse()) {
    if (tick.isPlanned) continue;
    if (tick.outcome !== "overlap") break;
    number += tick.count;
  }
  return number;
}

const TROUBLES: readonly [Trouble, string][] = [
  ["failed", "failed"],
  ["missed", "missed ticks"],
  ["overlaps", "overlap"],
  ["is late", "are late"],
];

// "1 schedule overlaps, 1 failed"
export function verdictOf(schedules: readonly Schedule[]): string {
  if (schedules.length === 0) return "There is no schedule yet";
  const found = TROUBLES.map(([trouble, many]) => {
    const number = schedules.filter((schedule) => troubleOf(schedule) === trouble).length;
    return { number, words: number === 1 ? (trouble === "missed" ? "missed a tick" : trouble) : many };
  }).filter(({ number }) => number > 0);
  const paused = schedules.filter((schedule) => schedule.paused !== null).length;
  if (found.length === 0) {
    if (paused === schedules.length)
      return schedules.length === 1 ? "The schedule is paused" : "All schedules are paused";
    if (paused > 0) return `${plural(paused, "schedule")} paused, ${schedules.length - paused} on time`;
    return schedules.length === 1 ? "The schedule is on time" : "All schedules are on time";
  }
  if (paused > 0) found.push({ number: paused, words: "paused" });
  const [first, ...rest] = found;
  return [
    `${plural(first?.number ?? 0, "schedule")} ${first?.words}`,
    ...rest.map(({ number, words }) => `${number} ${words}`),
  ].join(", ");
}

export function hasStarted(outcome: string): boolean {
  return ["fired", "caught_up", "backfilled"].includes(outcome);
}

// "10 started (9 success, 1 running), 3 did not"
export function sumWords(outcomes: Record<string, number>, statuses: Record<string, number> | null): string {
  const sum = (names: readonly string[]) => names.reduce((total, name) => total + (outcomes[name] ?? 0), 0);
  const started = sum(["fired", "caught_up", "backfilled"]);
  const not = sum(NOT_RUN);
  const parts = Object.entries(statuses ?? {}).map(([status, number]) => `${number} ${status}`);
  const total = started + not + sum(["queued"]);
  if (total === 0) return "no tick";
  const inBrackets = parts.length > 0 && started > 0 ? ` (${parts.join(", ")})` : "";
  return `${plural(total, "tick")}: ${started} started${inBrackets}, ${not === 0 ? "none" : not} did not`;
}

// Which schedule `of` in the address means: a name, an id, or app/name where two apps share a name.
export function isNamed(schedule: Schedule, of: string): boolean {
  return [schedule.name, schedule.scheduleId, `${schedule.app}/${schedule.name}`].includes(of);
}

export function refOf(schedule: Schedule, all: readonly Schedule[]): string {
  const isShared = all.some((one) => one.name === schedule.name && one.app !== schedule.app);
  return isShared ? `${schedule.app}/${schedule.name}` : schedule.name;
}
