import { Link } from "wouter";
import { type Column, DataTable } from "../../components/DataTable";
import { Sparkline } from "../../components/Sparkline";
import { MarkChip, StateChip } from "../../components/StateChip";
import { Time } from "../../components/Time";
import { useIsTight } from "../../hooks/useMedia";
import { duration, percent } from "../../lib/format";
import { Outcomes } from "./Outcomes";
import { useNames } from "./useNames";
import { addressOf, type JobRow, type Names, quantile, successOf, whenWords } from "./words";

const FEW = 10;

const columnsOf = (names: Names, isTight: boolean): readonly Column<JobRow>[] => [
  { key: "state", head: "state", cell: (job) => <State job={job} />, width: 112 },
  { key: "job", head: "job", cell: (job) => <Name job={job} />, width: isTight ? 166 : "20%" },
  { key: "when", head: "runs", cell: (job) => <When job={job} names={names} /> },
  {
    key: "last",
    head: isTight ? "last 10" : "last 20 outcomes",
    cell: (job) => <Outcomes of={job.lastOutcomes ?? []} places={isTight ? FEW : undefined} />,
    width: isTight ? 92 : 162,
  },
  {
    key: "took",
    head: isTight ? "run time" : "run time, median",
    cell: (job) => <Took job={job} hasTrend={!isTight} />,
    isNumber: true,
    width: isTight ? 92 : 160,
  },
  { key: "success", head: "succeeded", cell: (job) => <Success job={job} />, isNumber: true, width: 78 },
  { key: "next", head: "next", cell: (job) => <Time at={job.nextAt} />, isNumber: true, width: 112 },
];

export function JobTable({ rows }: { rows: readonly JobRow[] }) {
  const names = useNames(rows);
  const isTight = useIsTight();
  return (
    <DataTable
      caption="Jobs by name"
      columns={columnsOf(names, isTight)}
      rows={rows}
      rowKey={(job) => job.jobId}
      href={addressOf}
      phone={(job) => <OnPhone job={job} names={names} />}
    />
  );
}

export function State({ job, isHead = false }: { job: JobRow; isHead?: boolean }) {
  if (job.state === "paused")
    return (
      <MarkChip icon="pause" colour="warn" isHead={isHead}>
        Paused
      </MarkChip>
    );
  if (job.state === "deleted") return <StateChip status="cancelled">Deleted</StateChip>;
  if (job.lastExecution === null && job.status !== "scheduled") return <span className="d3">No run yet</span>;
  return <StateChip status={job.status} isHead={isHead} />;
}

function Name({ job }: { job: JobRow }) {
  return (
    <Link href={addressOf(job)} title={`${job.app}/${job.name}`}>
      <b>{job.name}</b> <span className="d3 sm">{job.app}</span>
    </Link>
  );
}

function When({ job, names }: { job: JobRow; names: Names }) {
  const words = whenWords(job, names);
  return (
    <span className={words === "" ? "sm d3" : "sm d2"} title={words}>
      {words === "" ? "when asked" : words}
    </span>
  );
}

function Took({ job, hasTrend }: { job: JobRow; hasTrend: boolean }) {
  const took = (job.lastOutcomes ?? []).flatMap((one) => (one.tookS === null ? [] : [one.tookS]));
  const middle = quantile(took, 0.5);
  if (middle === null) return <span className="d3">—</span>;
  return (
    <span className="row" style={{ justifyContent: "flex-end" }}>
      {hasTrend && <Sparkline points={[...took].reverse()} label="run times of the last runs" width={72} height={18} />}
      <span className="num" style={{ width: 62 }}>
        {duration(middle)}
      </span>
    </span>
  );
}

function Success({ job }: { job: JobRow }) {
  const share = successOf(job.lastOutcomes ?? []);
  return share === null ? (
    <span className="d3">—</span>
  ) : (
    <span className={share === 1 ? "d2" : ""}>{percent(share)}</span>
  );
}

function OnPhone({ job, names }: { job: JobRow; names: Names }) {
  const outcomes = job.lastOutcomes ?? [];
  return (
    <div className="col" style={{ gap: 2 }}>
      <span className="row">
        <State job={job} />
        <span className="gr el">
          <Name job={job} />
        </span>
        <span className="d3 sm">{job.nextAt !== null && <Time at={job.nextAt} />}</span>
      </span>
      <span className="row">
        <span className="gr el">
          <When job={job} names={names} />
        </span>
        {outcomes.length > 0 && <Outcomes of={outcomes} places={FEW} />}
      </span>
    </div>
  );
}
