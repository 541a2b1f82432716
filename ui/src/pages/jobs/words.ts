import type { Job } from "../../api/schema";
import { hasEnded } from "../../lib/states";

export type JobRow = Job;

// Jobs made through the API name what they depend on by its id.
export type Names = ReadonlyMap<string, string>;

interface When {
  schedules: readonly { words: string; paused: unknown }[];
  on: unknown;
  dependencies: readonly unknown[];
}

// When a job runs: "at 04:00 on Monday to Friday, in Europe/Berlin", "on event order.paid", "after extract".
export function whenWords(job: When, names: Names = new Map()): string {
  const parts = job.schedules.map((one) => (one.paused === null ? one.words : `${one.words} (paused)`));
  const events = (job.on as { event?: string | string[] } | null)?.event ?? [];
  const heard = Array.isArray(events) ? events : [events];
  if (heard.length > 0) parts.push(`on event ${heard.join(", ")}`);
  const after = job.dependencies.map(upstreamOf);
  if (after.length > 0) parts.push(`after ${after.map((one) => names.get(one.job) ?? one.job).join(", ")}`);
  return parts.join("; ");
}

export interface Upstream {
  job: string;
  on: string;
}

export function upstreamOf(given: unknown): Upstream {
  if (typeof given === "string") return { job: given, on: "success" };
  const { job, on } = given as { job?: string; on?: string };
  return { job: job ?? "", on: on ?? "success" };
}

export function addressOf(job: { app: string; name: string }): string {
  return `/jobs/${encodeURIComponent(job.app)}/${encodeURIComponent(job.name)}`;
}

// The middle of some numbers.
export function quantile(values: readonly number[], share: number): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? null;
}

export function successOf(outcomes: readonly { status: string }[]): number | null {
  const ended = outcomes.filter((one) => hasEnded(one.status) && one.status !== "skipped");
  return ended.length === 0 ? null : ended.filter((one) => one.status === "success").length / ended.length;
}
