import type { ExecutionItem } from "../../api/schema";
import { useApi } from "../../hooks/useApi";
import { hasEnded } from "../../lib/states";
import type { Run, Step } from "./model";

// Lists give the members that were asked for; these are all that are read.
export type MapItem = Required<
  Pick<
    ExecutionItem,
    | "executionId"
    | "step"
    | "index"
    | "status"
    | "attemptCount"
    | "startedAt"
    | "completedAt"
    | "createdAt"
    | "errorMessage"
  >
>;

// Up to so many items are a cell each; of more, a state is chosen first.
export const MOST_CELLS = 400;

const FIELDS = "executionId,step,index,status,attemptCount,startedAt,completedAt,createdAt,errorMessage";

interface Asked {
  status?: string | null;
  cursor?: string | null;
}

// The items of a map, in the order of their list.
export function useItems(run: Run, step: Step | null, { status = null, cursor = null }: Asked = {}) {
  const of = step?.job ?? step?.workflow ?? "";
  const query = {
    run: [run.runId],
    job: [of],
    app: [run.app],
    order: "asc",
    limit: MOST_CELLS,
    fields: FIELDS,
    ...(status === null ? {} : { status: [status as MapItem["status"]] }),
    ...(cursor === null ? {} : { cursor }),
  };
  const isOpen = run.completedAt === null;
  const found = useApi(
    "/executions",
    { query },
    { live: isOpen ? [`runs:${run.runId}`, "pulse"] : [], everyMs: 2000, enabled: step !== null && step.map !== null },
  );
  const items = ((found.data?.items ?? []) as MapItem[]).filter((item) => item.step === step?.step);
  return { items, next: found.data?.nextCursor ?? null, previous: found.data?.previousCursor ?? null };
}

// The item that most deserves a look: a bad one, then the open one with the most attempts.
export function worstItem(items: readonly MapItem[]): MapItem | null {
  const weight = (item: MapItem) =>
    item.status === "failed"
      ? 1000
      : hasEnded(item.status)
        ? 0
        : 10 * item.attemptCount + (item.status === "running" ? 2 : 1);
  const worst = items.reduce<MapItem | null>(
    (best, item) => (best && weight(best) >= weight(item) ? best : item),
    null,
  );
  return worst !== null && weight(worst) > 0 ? worst : null;
}
