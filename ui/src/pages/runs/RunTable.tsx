import type { ReactNode } from "react";
import { Link } from "wouter";
import { Bar } from "../../components/Bar";
import { type Column, DataTable } from "../../components/DataTable";
import { Id } from "../../components/Id";
import { MarkChip, StateChip } from "../../components/StateChip";
import { Duration, Time } from "../../components/Time";
import { useNow } from "../../hooks/useNow";
import { count } from "../../lib/format";
import { reasonWords } from "../../lib/reasons";
import { ExpectedEnd } from "./ExpectedEnd";
import { heldBy, useForecast } from "./useForecast";
import type { RunRow } from "./useSteady";

const COLUMNS: readonly Column<RunRow>[] = [
  { key: "state", head: "state", cell: (run) => <State run={run} />, width: 118 },
  { key: "workflow", head: "workflow", cell: (run) => <Name run={run} />, width: "20%" },
  { key: "progress", head: "steps", cell: (run) => <Progress run={run} />, width: 168 },
  { key: "critical", head: "held up by, or failed at", cell: (run) => <Critical run={run} /> },
  {
    key: "took",
    head: "took",
    cell: (run) => <Duration from={run.startedAt} to={run.completedAt} />,
    isNumber: true,
    width: 96,
    isExtra: true,
  },
  { key: "end", head: "expected end", cell: (run) => <ExpectedEnd run={run} />, isNumber: true, width: 116 },
  { key: "created", head: "created", cell: (run) => <Time at={run.createdAt} />, isNumber: true, width: 110 },
  { key: "id", head: "id", cell: (run) => <Id id={run.runId} href={`/runs/${run.runId}`} />, width: 96, isExtra: true },
];

export function RunTable({ rows, before }: { rows: readonly RunRow[]; before?: ReactNode }) {
  return (
    <DataTable
      caption="Runs, newest first"
      columns={COLUMNS}
      rows={rows}
      rowKey={(run) => run.runId}
      href={(run) => `/runs/${run.runId}`}
      phone={(run) => <OnPhone run={run} />}
      before={before}
    />
  );
}

function State({ run }: { run: RunRow }) {
  if (run.paused !== null && run.completedAt === null)
    return (
      <MarkChip icon="pause" colour="warn">
        Paused
      </MarkChip>
    );
  return <StateChip status={run.status} />;
}

function Name({ run }: { run: RunRow }) {
  return (
    <Link href={`/runs/${run.runId}`} title={run.workflow}>
      <b>{run.workflow}</b>
    </Link>
  );
}

function Progress({ run }: { run: RunRow }) {
  const words = `${count(run.endedCount)} of ${count(run.stepCount)}`;
  const colour = run.status === "failed" ? "failed" : run.completedAt === null ? "running" : "success";
  return (
    <span className="row">
      <span className="num" style={{ width: 64 }}>
        {words}
      </span>
      <Bar
        parts={[
          { share: run.endedCount / Math.max(1, run.stepCount), colour: run.status === "success" ? "rest" : colour },
        ]}
        label={`${words} steps have ended`}
        width={70}
      />
    </span>
  );
}

// The step that decides: the one that failed, or those that the run waits for.
function Critical({ run }: { run: RunRow }) {
  const now = useNow();
  const held = heldBy(useForecast(run), now);
  const step = run.failedStep ?? run.waitingSteps[0] ?? held ?? undefined;
  if (run.status === "failed")
    return (
      <Link href={addressOf(run, run.failedStep)} title={run.errorMessage ?? undefined}>
        {run.failedStep !== null && <b>{run.failedStep} </b>}
        {run.errorMessage !== null ? <span className="mono">{run.errorMessage}</span> : reasonWords(run.reason ?? "")}
      </Link>
    );
  if (run.questions.length > 0)
    return (
      <Link href={addressOf(run, step)} title={run.questions.join("\n")}>
        <b>{step}</b> asks: {run.questions[0]}
      </Link>
    );
  if (run.completedAt !== null || step === undefined) return <span className="d3 not-phone">—</span>;
  const more = run.waitingSteps.length - 1;
  return (
    <Link href={addressOf(run, step)}>
      <b>{step}</b>
      {more > 0 && <span className="d3"> and {more} more</span>}
    </Link>
  );
}

function addressOf(run: RunRow, step: string | null | undefined): string {
  return `/runs/${run.runId}${step ? `?step=${encodeURIComponent(step)}` : ""}`;
}

function OnPhone({ run }: { run: RunRow }) {
  return (
    <div className="col" style={{ gap: 2 }}>
      <span className="row">
        <State run={run} />
        <span className="gr el">
          <Name run={run} />
        </span>
        <span className="d3">
          <Time at={run.createdAt} />
        </span>
      </span>
      <span className="row sm">
        <span className="d2 nw">
          {run.endedCount} of {run.stepCount}
        </span>
        <span className="gr el">
          <Critical run={run} />
        </span>
        {run.completedAt === null && <ExpectedEnd run={run} />}
      </span>
    </div>
  );
}
