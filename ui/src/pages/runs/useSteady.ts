import { useState } from "react";
import type { Item } from "../../api/types";

export type RunRow = Required<Item<"/runs">>;

// Rows keep their places while what they show changes; new ones wait until they are asked for.
export function useSteady(key: string, newest: readonly Item<"/runs">[] | undefined) {
  const [kept, setKept] = useState<{ key: string; ids: readonly string[]; rows: ReadonlyMap<string, RunRow> }>({
    key: "",
    ids: [],
    rows: new Map(),
  });
  const found = (newest ?? []) as readonly RunRow[];
  const isOther = newest !== undefined && (kept.key !== key || (kept.ids.length === 0 && found.length > 0));
  const take = () => ({ key, ids: found.map((run) => run.runId), rows: new Map(found.map((run) => [run.runId, run])) });
  if (isOther) setKept(take());
  const now = isOther ? take() : kept;
  const latest = new Map([...now.rows, ...found.map((run) => [run.runId, run] as const)]);
  return {
    rows: now.ids.flatMap((id) => latest.get(id) ?? []),
    fresh: found.filter((run) => !now.rows.has(run.runId)).length,
    show: () => setKept(take()),
  };
}
