import { Age, Time } from "../../components/Time";
import { useIsPhone } from "../../hooks/useMedia";
import { useNow } from "../../hooks/useNow";
import { duration, secondsBetween } from "../../lib/format";
import { State } from "../jobs/JobTable";
import { useNames } from "../jobs/useNames";
import { whenWords } from "../jobs/words";
import css from "./Job.module.css";
import { JobActions } from "./JobActions";
import type { Job } from "./useRuns";

// The job in a sentence or two, and what to do with it.
export function JobHead({ job }: { job: Job }) {
  const when = whenWords(job, useNames([job]));
  const isPhone = useIsPhone();
  return (
    <div className="row top wrap">
      <div className="gr" style={{ minWidth: 0 }}>
        <div className="row wrap">
          <span className={css.name} title={job.name}>
            {job.name}
          </span>
          <State job={job} isHead />
          <span className="d3">
            <Now job={job} />
          </span>
        </div>
        <p className="d2">
          {job.description} {when !== "" && `Runs ${when}.`}{" "}
          {job.nextAt !== null && (
            <>
              Next: <Time at={job.nextAt} />.
            </>
          )}
        </p>
      </div>
      {!isPhone && <JobActions job={job} />}
    </div>
  );
}

function Now({ job }: { job: Job }) {
  const now = useNow();
  if (job.paused !== null && job.state === "paused")
    return (
      <>
        for <Age since={job.paused.at} />
        {job.paused.by !== null && ` by ${job.paused.by}`}
        {job.paused.note && `: “${job.paused.note}”`}
      </>
    );
  if (job.status === "running" && job.startedAt !== null)
    return <>for {duration(secondsBetween(job.startedAt, now))}</>;
  if (job.lastExecution?.completedAt)
    return (
      <>
        <Age since={job.lastExecution.completedAt} /> ago
      </>
    );
  return null;
}

export function verdictOf(job: Job): string {
  if (job.state === "paused") return `${job.name} is paused`;
  if (job.state === "deleted") return `${job.name} was deleted`;
  if (job.status === "failed") return `✗ ${job.name} failed last`;
  if (job.status === "running") return `${job.name} runs`;
  return job.lastExecution === null ? `${job.name} has not run yet` : `${job.name}: ${job.status}`;
}
