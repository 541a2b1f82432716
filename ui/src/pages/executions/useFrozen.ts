import { useState } from "react";
import { useApi } from "../../hooks/useApi";
import { hasEnded } from "../../lib/states";
import type { ExecutionItem, ExecutionQuery } from "./filter";

interface Frozen {
  rows: readonly ExecutionItem[];
  // How many rows of the newest page are not shown yet, and whether there may be more.
  fresh: { number: number; isCapped: boolean };
  show: () => void;
}

const MOST_IDS = 100;

// Rows that stay where they are. What the list has meanwhile waits until it is asked for; a row that is shown follows its
// execution, also if that one has left the list.
export function useFrozen(key: string, newest: readonly ExecutionItem[] | undefined, query: ExecutionQuery): Frozen {
  const [kept, setKept] = useState<{ key: string; rows: readonly ExecutionItem[] }>({ key: "", rows: [] });
  const isOther = newest !== undefined && (kept.key !== key || kept.rows.length === 0) && kept.rows !== newest;
  if (isOther) setKept({ key, rows: newest });
  const shown = isOther ? newest : kept.rows;
  const found = new Map((newest ?? []).map((row) => [row.executionId, row]));
  const left = shown.filter((row) => !found.has(row.executionId) && !hasEnded(row.status ?? ""));
  const ids = left.map((row) => row.executionId ?? "").slice(0, MOST_IDS);
  const others = useApi(
    "/executions",
    { query: { id: ids, fields: query.fields, limit: MOST_IDS } },
    { live: ["pulse"], everyMs: 2000, enabled: ids.length > 0 },
  );
  for (const row of others.data?.items ?? []) if (!found.has(row.executionId)) found.set(row.executionId, row);
  const known = new Set(shown.map((row) => row.executionId));
  const number = (newest ?? []).filter((row) => !known.has(row.executionId)).length;
  return {
    rows: shown.map((row) => found.get(row.executionId) ?? row),
    fresh: { number, isCapped: number > 0 && number === newest?.length },
    show: () => setKept({ key, rows: newest ?? [] }),
  };
}
