import type { Query, QueryClient } from "@tanstack/react-query";
import { type Batch, listen } from "./live";
import type { ServerEvent } from "./sse";

// What makes a query fetch again: pulse (queues and workers moved), changes (a definition, a pause), or the execution or
// run that it shows.
export type Topic = "pulse" | "changes" | `executions:${string}` | `runs:${string}`;

interface LiveMeta {
  live?: readonly Topic[];
  everyMs?: number;
}

const LEAST_MS = 1_000;

// Fetches again what is on screen and has changed, each query at most as often as it allows.
export function refreshOnEvents(client: QueryClient): () => void {
  const later = new Map<string, ReturnType<typeof setTimeout>>();
  const refetch = (query: Query) => {
    void client.refetchQueries({ queryKey: query.queryKey, exact: true, type: "active" }, { cancelRefetch: false });
  };
  const refetchInTime = (query: Query) => {
    if (later.has(query.queryHash)) return;
    const { everyMs = LEAST_MS } = (query.meta ?? {}) as LiveMeta;
    const waitMs = Math.max(0, query.state.dataUpdatedAt + everyMs - Date.now());
    const run = () => {
      later.delete(query.queryHash);
      refetch(query);
    };
    later.set(query.queryHash, setTimeout(run, waitMs));
  };
  const stop = listen((batch) => {
    const topics = new Set(batch.events.flatMap(topicsOf));
    for (const query of client.getQueryCache().findAll({ type: "active" })) {
      if (batch.isGap) refetch(query);
      else if (isConcerned(query, topics)) refetchInTime(query);
    }
  });
  return () => {
    stop();
    for (const timer of later.values()) clearTimeout(timer);
  };
}

function isConcerned(query: Query, topics: Set<string>): boolean {
  const { live = [] } = (query.meta ?? {}) as LiveMeta;
  return live.some((topic) => topics.has(topic));
}

export function topicsOf(event: ServerEvent): string[] {
  const about = event.data as { executionId?: string; runId?: string };
  if (event.name === "pulse") return ["pulse"];
  if (event.name === "change") return ["changes"];
  if (event.name === "execution") return [`executions:${about.executionId}`];
  if (event.name === "run") return [`runs:${about.runId}`];
  return [];
}

export type { Batch };
