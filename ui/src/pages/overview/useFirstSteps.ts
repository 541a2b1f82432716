import type { Answer } from "../../api/types";
import { useApi } from "../../hooks/useApi";

// Whether the system is empty: no worker, and no job that was ever registered. Asked only if nothing else speaks against it.
export function useFirstSteps(overview: Answer<"/overview"> | undefined): boolean {
  const isQuiet =
    overview !== undefined &&
    overview.findingCount === 0 &&
    overview.numbers.slots === 0 &&
    overview.numbers.queued === 0 &&
    overview.numbers.waiting === 0 &&
    overview.numbers.dead === 0;
  const jobs = useApi("/jobs", { query: { limit: 1 } }, { live: ["changes"], enabled: isQuiet });
  return isQuiet && jobs.data !== undefined && jobs.data.items.length === 0;
}
