import { keepPreviousData, type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { get, namespace } from "../api/client";
import { held, watch } from "../api/live";
import type { Problem } from "../api/problem";
import type { Topic } from "../api/refreshing";
import type { Answer, Asked, Operation, PathOf } from "../api/types";
import { useSignal } from "../lib/signal";

export interface ApiOptions {
  // What makes it fetch again; see api/refreshing.ts.
  live?: readonly Topic[];
  // At most so often; one second unless told.
  everyMs?: number;
  // Also without an event, so often while the tab is visible and not on hold: for texts with an age in them.
  repeatMs?: number;
  enabled?: boolean;
  // Whether old data stays on screen while other parameters load. True unless told.
  keep?: boolean;
}

// GET of one route. The key is the address, so the same address is fetched once and shared by all who show it.
export function useApi<S extends PathOf<"get">>(
  path: S,
  asked: Asked<Operation<S, "get">> = {},
  { live = [], everyMs, repeatMs, enabled = true, keep = true }: ApiOptions = {},
): UseQueryResult<Answer<S>, Problem> {
  useWatched(enabled ? live : []);
  const isHeld = useSignal(held);
  return useQuery<Answer<S>, Problem>({
    queryKey: keyOf(path, asked, useSignal(namespace)),
    queryFn: ({ signal }) => get(path, asked, signal),
    enabled,
    meta: { live, everyMs },
    refetchInterval: repeatMs === undefined || isHeld ? false : repeatMs,
    placeholderData: keep ? (keepPreviousData as never) : undefined,
  });
}

export function keyOf(path: string, asked: { path?: unknown; query?: unknown }, space: string): readonly unknown[] {
  return [path, asked.path ?? null, asked.query ?? null, space];
}

// The stream sends events of an execution or a run only to those who name it.
function useWatched(live: readonly Topic[]): void {
  const named = live.filter((topic) => topic.includes(":")).join(" ");
  useEffect(() => {
    const stops = named === "" ? [] : named.split(" ").map(watch);
    return () => {
      for (const stop of stops) stop();
    };
  }, [named]);
}
