import { Link } from "wouter";
import { Bar } from "../../components/Bar";
import { type Column, DataTable } from "../../components/DataTable";
import { Id } from "../../components/Id";
import { Panel } from "../../components/Panel";
import { StateChip } from "../../components/StateChip";
import { Duration, Time } from "../../components/Time";
import { attemptsOf } from "../executions/words";
import { type Job, lateOf, type RunOfJob } from "./useRuns";

const FEW = 8;

const COLUMNS: readonly Column<RunOfJob>[] = [
  { key: "state", head: "state", cell: (run) => <StateChip status={run.status} />, width: 120 },
  { key: "tick", head: "tick or due", cell: (run) => <Time at={run.tick ?? run.runAt} />, width: 130 },
  { key: "took", head: "took", cell: (run) => <Duration from={run.startedAt} to={run.completedAt} />, isNumber: true },
  {
    key: "progress",
    head: <span className="unseen">progress</span>,
    cell: (run) => <Progress run={run} />,
    width: 140,
  },
  { key: "attempts", head: "attempts", cell: (run) => attemptsOf(run), isNumber: true },
  { key: "late", head: "late by", cell: (run) => <Duration seconds={lateOf(run)} />, isNumber: true },
  { key: "version", head: "version", cell: (run) => run.version, isNumber: true },
  {
    key: "id",
    head: "id",
    cell: (run) => <Id id={run.executionId} href={`/executions/${run.executionId}`} />,
    width: 96,
  },
];

function Progress({ run }: { run: RunOfJob }) {
  if (run.status !== "running" || run.progress == null) return null;
  return (
    <Bar parts={[{ share: run.progress / 100, colour: "running" }]} label={`${run.progress} % done`} width={120} />
  );
}

export function LatestRuns({ job, runs }: { job: Job; runs: readonly RunOfJob[] }) {
  const address = `/executions?job=${encodeURIComponent(job.name)}&app=${encodeURIComponent(job.app)}&since=all`;
  return (
    <Panel
      title="Latest runs"
      isFlush
      right={
        <Link href={address} className="sm ln d2">
          All executions
        </Link>
      }
    >
      <DataTable
        caption={`Latest runs of ${job.name}`}
        columns={COLUMNS}
        rows={runs.slice(0, FEW)}
        rowKey={(run) => run.executionId}
        href={(run) => `/executions/${run.executionId}`}
        phone={(run) => (
          <Link href={`/executions/${run.executionId}`} className="row">
            <span className="gr">
              <StateChip status={run.status} />
            </span>
            <Duration from={run.startedAt} to={run.completedAt} />
            <span className="d3">
              <Time at={run.tick ?? run.runAt} />
            </span>
          </Link>
        )}
      />
    </Panel>
  );
}
