import type { ExecutionItem, JobInFull } from "../../api/schema";
import { useApi } from "../../hooks/useApi";
import { secondsBetween } from "../../lib/format";

export type Job = JobInFull;

const FIELDS =
  "executionId,status,createdAt,runAt,startedAt,completedAt,version,attemptCount,maxAttempts,progress,tick,worker";
type Name = "executionId" | "status" | "createdAt" | "runAt" | "startedAt" | "completedAt" | "version" | "attemptCount";
export type RunOfJob = Required<Pick<ExecutionItem, Name>> &
  Pick<ExecutionItem, "maxAttempts" | "progress"> & { tick?: string | null };

export const MOST_RUNS = 200;

// The newest runs of a job, up to a number that a chart can show.
export function useRuns(job: Job, days: number): readonly RunOfJob[] | undefined {
  const query = { job: [job.name], app: [job.app], createdFrom: `${days}d`, limit: MOST_RUNS, fields: FIELDS };
  const found = useApi("/executions", { query }, { live: ["pulse"], everyMs: 3000 });
  return found.data?.items as readonly RunOfJob[] | undefined;
}

export function tookOf(run: RunOfJob, now: number): number | null {
  return run.startedAt === null ? null : secondsBetween(run.startedAt, run.completedAt ?? now);
}

// How much later than its tick, or than its time, an execution started.
export function lateOf(run: RunOfJob): number | null {
  if (run.startedAt === null || run.attemptCount > 1) return null;
  return Math.max(0, secondsBetween(run.tick ?? run.runAt, run.startedAt));
}
