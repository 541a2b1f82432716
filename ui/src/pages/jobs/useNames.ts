import { useApi } from "../../hooks/useApi";
import { type Names, upstreamOf } from "./words";

// The names of jobs by their ids; asked for only where a job depends on others.
export function useNames(jobs: readonly { dependencies: readonly unknown[] }[]): Names {
  const isNeeded = jobs.some((job) => job.dependencies.map(upstreamOf).some((one) => one.job.includes("-")));
  const all = useApi(
    "/jobs",
    { query: { limit: 1000, fields: "jobId,name" } },
    { enabled: isNeeded, live: ["changes"] },
  );
  return new Map((all.data?.items ?? []).map((job) => [job.jobId ?? "", job.name ?? ""]));
}
