import type { Answer, Item } from "../../api/types";
import { serverNow } from "../../hooks/useNow";
import { reasonWords } from "../../lib/reasons";
import type { Target } from "../executions/bulk/verbs";
import type { ExecutionFilter } from "../executions/filter";

export type ErrorGroup = Item<"/errors">;
export type ErrorDetail = Answer<"/errors/{fingerprint}">;

export function keyOf(group: ErrorGroup): string {
  return group.fingerprint ?? `reason ${group.reason}`;
}

// The letters of some groups. Those without an error are the ones of a reason and of its jobs.
export function filterFor(groups: readonly ErrorGroup[], jobs: readonly string[]): ExecutionFilter {
  const fingerprints = groups.flatMap((group) => (group.fingerprint === null ? [] : [group.fingerprint]));
  const only = jobs.length === 0 ? {} : { job: [...jobs] };
  if (fingerprints.length > 0) return { dead: true, fingerprint: fingerprints, ...only };
  const own = groups.flatMap((group) => group.jobs.map((one) => one.job));
  return { dead: true, reason: groups.map((group) => group.reason), job: [...new Set(own)], ...only };
}

// What arrives from now on is not included.
export function targetFor(filter: ExecutionFilter): Target {
  return { filter, asOf: new Date(serverNow()).toISOString() };
}

// The address of the same letters as a list.
export function listAddress(filter: ExecutionFilter): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter))
    for (const one of Array.isArray(value) ? value : [value]) query.append(name, String(one));
  query.set("since", "all");
  return `/executions?${query}`;
}

const CAUSES: Record<string, string> = {
  crash_loop: "its worker died several times while it ran",
  crashed: "its worker died while it ran",
  out_of_memory: "it needed more memory than it may have",
  timeout: "it ran longer than its timeout",
  total_timeout: "it was not done within its time in all",
  lease_lost: "its worker was lost",
  step_failed: "a step of the run failed",
};

export function titleOf(group: ErrorGroup): string {
  return group.type ?? reasonWords(group.reason);
}

export function messageOf(group: ErrorGroup): string {
  return group.message ?? CAUSES[group.reason] ?? reasonWords(group.reason);
}
