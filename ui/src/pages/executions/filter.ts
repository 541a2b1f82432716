// What a list of executions is narrowed to. It is in the address, under the names that the API has for it.
import type { Item, Operation, QueryOf } from "../../api/types";
import { boundsOf, type TimeRange } from "../../hooks/useTimeRange";
import type { UrlState } from "../../hooks/useUrlState";
import { hasEnded, type Status } from "../../lib/states";

export type ExecutionItem = Item<"/executions">;
export type ExecutionQuery = QueryOf<Operation<"/executions", "get">>;
export type ExecutionFilter = Omit<ExecutionQuery, "limit" | "cursor" | "order" | "fields">;

export const MANY = [
  "job",
  "app",
  "queue",
  "tag",
  "reason",
  "errorType",
  "worker",
  "schedule",
  "run",
  "parent",
  "replayOf",
  "key",
  "actor",
  "fingerprint",
] as const;

type Read = Pick<UrlState, "one" | "all">;

// All but the times.
export function filterOf(url: Read): ExecutionFilter {
  const found: ExecutionFilter = {};
  const statuses = url.all("status") as Status[];
  if (statuses.length > 0) found.status = statuses;
  for (const name of MANY) {
    const values = url.all(name);
    if (values.length > 0) found[name] = values;
  }
  const error = url.one("error");
  if (error !== null) found.error = error;
  const dead = url.one("dead");
  if (dead !== null) found.dead = dead === "true";
  return found;
}

// Whether the range limits the list. What waits or runs is here now, whenever it was made.
export function isTimed(filter: ExecutionFilter, since: string): boolean {
  const statuses = filter.status ?? [];
  return since !== "all" && !(statuses.length > 0 && statuses.every((status) => !hasEnded(status)));
}

export function withTimes(
  filter: ExecutionFilter,
  { since, until }: Pick<TimeRange, "since" | "until">,
): ExecutionFilter {
  if (!isTimed(filter, since)) return filter;
  return { ...filter, createdFrom: since, ...(until === null ? {} : { createdTo: until }) };
}

// The same for an action, which wants moments and not lengths of time.
export function fixedTimes(filter: ExecutionFilter, now: number): ExecutionFilter {
  if (filter.createdFrom === undefined) return filter;
  const [from] = boundsOf(filter.createdFrom, filter.createdTo ?? null, now);
  return { ...filter, createdFrom: new Date(from).toISOString() };
}

const LIST_ONLY = ["cursor", "view"];

// The address of an execution that remembers the list from which it was opened.
export function addressOf(id: string, search: string): string {
  const list = new URLSearchParams(search);
  for (const name of LIST_ONLY) list.delete(name);
  const text = list.toString();
  return `/executions/${id}?list=${text === "" ? "all" : encodeURIComponent(text)}`;
}
