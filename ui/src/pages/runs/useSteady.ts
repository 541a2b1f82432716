import type { Item } from "../../api/types";
import { useSteady as useSteadyRows } from "../../hooks/useSteady";

export type RunRow = Required<Item<"/runs">>;

export function useSteady(key: string, newest: readonly Item<"/runs">[] | undefined) {
  return useSteadyRows(key, newest as readonly RunRow[] | undefined, (run) => run.runId);
}
