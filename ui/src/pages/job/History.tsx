import { Panel } from "../../components/Panel";
import { Segmented } from "../../components/Segmented";
import { Empty, Loading } from "../../components/States";
import { useApi } from "../../hooks/useApi";
import { useUrlState } from "../../hooks/useUrlState";
import { Days } from "./Days";
import css from "./Job.module.css";
import { LatestRuns } from "./LatestRuns";
import { Numbers } from "./Numbers";
import { RunTimes } from "./RunTimes";
import { type Job, MOST_RUNS, useRuns } from "./useRuns";
import { Versions } from "./Versions";
import { Where } from "./Where";

const RANGES = [
  { value: "60", label: "60 days" },
  { value: "365", label: "1 year" },
];

export function History({ job }: { job: Job }) {
  const url = useUrlState();
  const days = url.one("days") === "365" ? 365 : 60;
  const runs = useRuns(job, days);
  const versions = useApi(
    "/jobs/{job}/versions",
    { path: { job: job.jobId }, query: { limit: 50 } },
    { live: ["changes"] },
  );
  if (runs === undefined) return <Loading />;
  const all = versions.data?.items ?? [];
  return (
    <div className="stack">
      <Numbers job={job} days={days} runs={runs} />
      <div className={css.history}>
        <div className="stack">
          <Panel
            title="Run time"
            note={`each mark a run${runs.length === MOST_RUNS ? `, the last ${MOST_RUNS}` : ""}; the band holds nine of ten`}
            right={
              <Segmented
                label="How far back"
                value={String(days)}
                options={RANGES}
                onChange={(value) => url.set({ days: value === "60" ? null : value }, { replace: true })}
              />
            }
          >
            <RunTimes runs={runs} versions={all} />
          </Panel>
          {runs.length === 0 ? (
            <Panel title="Latest runs">
              <Empty title={`No run in ${days} days`}>
                <span>Press “Run…” above to start one.</span>
              </Empty>
            </Panel>
          ) : (
            <LatestRuns job={job} runs={runs} />
          )}
          <Where job={job} />
        </div>
        <div className="stack">
          <Days job={job} />
          {all.length > 0 && <Versions job={job} versions={all} runs={runs} />}
        </div>
      </div>
    </div>
  );
}
