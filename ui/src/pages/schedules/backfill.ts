import { change } from "../../api/client";
import type { Schedule } from "./words";

export const MOST = 1000;

interface Result {
  started?: number | null;
  error?: string | null;
}

// Runs the ticks between two moments that have not run, both ends included. A dry run only says how many there are.
export async function backfill(schedule: Schedule, from: string, to: string, dryRun: boolean): Promise<number> {
  const answer = (await change("post", "/actions", {
    query: { dryRun },
    body: {
      action: "backfill",
      on: "schedules",
      ids: [`${schedule.app}/${schedule.name}`],
      options: { from, to, most: MOST },
    },
  })) as { items?: Result[]; would?: { items?: Result[] } };
  const result = (answer.would ?? answer).items?.[0];
  if (result?.error) throw new Error(result.error);
  return result?.started ?? 0;
}
