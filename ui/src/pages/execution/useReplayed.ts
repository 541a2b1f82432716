import { useLocation } from "wouter";
import { shortId } from "../../lib/format";

interface Created {
  executionId: string;
  job: string;
}

// The words after a replay, with the way to the new execution.
export function useReplayed(): (created: Created) => { text: string; action: { label: string; run: () => void } } {
  const [, go] = useLocation();
  return (created) => ({
    text: `Replayed ${created.job} as ${shortId(created.executionId)}.`,
    action: { label: "Open it", run: () => go(`/executions/${created.executionId}`) },
  });
}
