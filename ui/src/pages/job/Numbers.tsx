import type { ReactNode } from "react";
import { Panel } from "../../components/Panel";
import { useApi } from "../../hooks/useApi";
import { useNow } from "../../hooks/useNow";
import { count, duration, percent, plural } from "../../lib/format";
import { quantile } from "../jobs/words";
import css from "./Job.module.css";
import { type Job, lateOf, type RunOfJob, tookOf } from "./useRuns";

const METRICS = ["success", "failed", "cancelled", "retries"] as const;

interface Props {
  job: Job;
  days: number;
  runs: readonly RunOfJob[];
}

// Five numbers: counts of the whole range, times of the runs that the chart below shows.
export function Numbers({ job, days, runs }: Props) {
  const now = useNow();
  const stats = useApi(
    "/stats",
    { query: { metrics: [...METRICS], job: [job.name], app: [job.app], from: `${days}d`, step: "24h" } },
    { live: ["pulse"], everyMs: 10_000 },
  );
  const sum = (metric: string) =>
    (stats.data?.series.find((one) => one.metric === metric)?.points ?? []).reduce(
      (all, [, value]) => all + (value ?? 0),
      0,
    );
  const [won, lost] = [sum("success"), sum("failed") + sum("cancelled")];
  const good = runs.filter((run) => run.status === "success");
  const took = good.flatMap((run) => tookOf(run, now) ?? []);
  const late = runs.flatMap((run) => lateOf(run) ?? []);
  const [middle, high] = [quantile(took, 0.5), quantile(took, 0.95)];
  const lateBy = quantile(late, 0.95);
  const text = (value: number | null) => (value === null ? "—" : duration(value));
  const ofRuns = `of ${plural(took.length, "run")}`;
  return (
    <Panel isFlush>
      <dl className={css.numbers}>
        <Number_ name={`Succeeded, ${days} days`} note={`${count(won)} of ${count(won + lost)} ended`}>
          {won + lost === 0 ? "—" : percent(won / (won + lost))}
        </Number_>
        <Number_ name="Run time, median" note={sinceVersion(job, good, now) ?? ofRuns}>
          {text(middle)}
        </Number_>
        <Number_
          name="Run time, 95th"
          note={job.timeout === 0 ? "no time limit" : `times out at ${duration(job.timeout)}`}
        >
          {text(high)}
        </Number_>
        <Number_ name="Late by, 95th" note={job.schedules.length > 0 ? "ticks to start" : "due to start"}>
          {text(lateBy)}
        </Number_>
        <Number_ name="Retries" note={`in ${days} days`}>
          {count(sum("retries"))}
        </Number_>
      </dl>
    </Panel>
  );
}

function Number_({ name, note, children }: { name: string; note: string; children: ReactNode }) {
  return (
    <div>
      <dt className="sm d3">{name}</dt>
      <dd className="tab">
        <b>{children}</b>
        <span className="sm d2">{note}</span>
      </dd>
    </div>
  );
}

// "+3 m since version 8", if the version in force takes clearly longer or shorter than the one before.
function sinceVersion(job: Job, good: readonly RunOfJob[], now: number): string | null {
  const middle = (of: (version: number) => boolean) =>
    quantile(
      good.filter((run) => of(run.version)).flatMap((run) => tookOf(run, now) ?? []),
      0.5,
    );
  const [latest, earlier] = [middle((version) => version === job.version), middle((version) => version < job.version)];
  if (latest === null || earlier === null || earlier === 0) return null;
  const change = latest - earlier;
  if (Math.abs(change) / earlier < 0.05) return null;
  return `${change > 0 ? "+" : "−"}${duration(Math.abs(change))} since version ${job.version}`;
}
