import { age, duration, secondsBetween } from "../../lib/format";
import { reasonWords } from "../../lib/reasons";
import type { ExecutionItem } from "./filter";

// The first check that holds an execution back, in a few words. The ladder on its page has the rest.
const WHY: Record<string, (row: ExecutionItem) => string> = {
  dependencies: () => "waits for other jobs",
  event: () => "waits for an event",
  approval: () => "waits for an answer",
  run_paused: () => "its run is paused",
  map: () => "waits for earlier items of its map",
  job_paused: (row) => `job ${row.job} is paused`,
  queue_paused: (row) => `queue ${row.queue} is paused`,
  breaker: () => "a breaker is open",
  limits: () => "waits for a limit",
  worker: (row) => `no live worker serves queue ${row.queue}`,
  worker_has_job: () => "no live worker has the job",
  worker_fits: () => "no live worker has what it needs",
  worker_starts: () => "no live worker can start a process for it",
  place: () => "in line",
};

// Why it is where it is, without the error.
export function reasonOf(row: ExecutionItem, now: number): string {
  if (row.status === "scheduled" && row.runAt !== undefined) return `starts ${inTime(row.runAt, now)}`;
  if (row.status === "retrying" && row.runAt !== undefined) return `again ${inTime(row.runAt, now)}`;
  if (row.why) return WHY[row.why]?.(row) ?? row.why.replaceAll("_", " ");
  if (row.status === "running") {
    return row.cancelRequestedAt ? "asked to stop" : row.progress == null ? "" : `${row.progress} %`;
  }
  if (row.status === "success" || row.status === "failed") return "";
  return row.reason ? reasonWords(row.reason) : "";
}

function inTime(at: string, now: number): string {
  const seconds = (Date.parse(at) - now) / 1000;
  return seconds <= 0 ? "now" : `in ${seconds < 60 ? duration(Math.ceil(seconds)) : age(seconds)}`;
}

// The class without its module: the message is what differs.
export function shortError(text: string | null | undefined): string {
  return (text ?? "").replace(/^(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_]\w*(?::|$))/, "");
}

// "2/3": the attempts so far, of those that it may have.
export function attemptsOf(row: ExecutionItem): string {
  const { attemptCount: count = 0, maxAttempts: most } = row;
  return most == null ? `${count}` : `${count}/${Math.max(most, count)}`;
}

// How long the last attempt took, or has taken.
export function tookOf(row: ExecutionItem, now: number): number | null {
  if (!row.startedAt) return null;
  if (row.status === "running") return secondsBetween(row.startedAt, now);
  return row.completedAt ? secondsBetween(row.startedAt, row.completedAt) : null;
}
