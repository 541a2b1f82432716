import type { Answer } from "../../api/types";
import { useApi } from "../../hooks/useApi";
import type { RunRow } from "./useSteady";

type Forecast = Answer<"/runs/{run}/forecast">;

// Of an open run. Each row asks for itself, because few of a list are open.
export function useForecast(run: RunRow): Forecast | undefined {
  const isOpen = run.completedAt === null && run.startedAt !== null;
  const found = useApi(
    "/runs/{run}/forecast",
    { path: { run: run.runId } },
    { enabled: isOpen, live: isOpen ? ["pulse"] : [], everyMs: 10_000 },
  );
  return isOpen ? found.data : undefined;
}

// Of the steps that have started, the one that is expected to end last.
export function heldBy(forecast: Forecast | undefined, now: number): string | null {
  const started = (forecast?.steps ?? []).filter((step) => step.startsAt !== null && Date.parse(step.startsAt) <= now);
  const last = started.reduce<(typeof started)[number] | null>(
    (best, step) => (best && (best.endsAt ?? "") >= (step.endsAt ?? "") ? best : step),
    null,
  );
  return last?.step ?? null;
}
