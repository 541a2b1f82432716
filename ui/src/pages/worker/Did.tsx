import { Link } from "wouter";
import { type Column, DataTable } from "../../components/DataTable";
import { Id } from "../../components/Id";
import { Panel } from "../../components/Panel";
import { StateChip } from "../../components/StateChip";
import { Empty, Loaded } from "../../components/States";
import { Duration, Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { shortError } from "../executions/words";
import { useHeld } from "../findings/useHeld";
import type { Worker } from "../workers/words";
import { Arguments, addressOf, type Execution, FIELDS, JobLink } from "./executionCells";

const LIMIT = 20;
// The list of the server is ordered by creation. What ended last may have been created before others.
const READ = 60;
const STATES = ["success", "failed", "cancelled", "retrying"] as const;

const COLUMNS: readonly Column<Execution>[] = [
  { key: "state", head: "state", cell: (one) => <StateChip status={one.status} />, width: 104 },
  { key: "job", head: "job", cell: (one) => <JobLink execution={one} />, width: "20%" },
  { key: "error", head: "arguments and error", cell: (one) => <WhatCame execution={one} /> },
  { key: "took", head: "took", cell: (one) => <Took execution={one} />, isNumber: true, width: 88 },
  {
    key: "ended",
    head: "ended",
    cell: (one) => <Time at={one.completedAt} />,
    isNumber: true,
    width: 104,
    isExtra: true,
  },
  {
    key: "id",
    head: "id",
    cell: (one) => <Id id={one.executionId} href={addressOf(one)} />,
    isNumber: true,
    width: 96,
    isExtra: true,
  },
];

// The executions whose last attempt ran on it, last ended first.
export function Did({ worker }: { worker: Worker }) {
  const query = { worker: [worker.workerId], status: [...STATES], limit: READ, fields: FIELDS };
  const done = useApi("/executions", { query }, { live: ["pulse"], everyMs: 2000 });
  const { rows, hold } = useHeld(lastEnded((done.data?.items ?? []) as Execution[]), (one) => one.executionId);
  return (
    <Panel
      title="Did lately"
      isFlush
      right={
        <Link href={`/executions?worker=${worker.workerId}&since=24h`} className="sm ln d2">
          All its executions
        </Link>
      }
    >
      <Loaded what="What it did" query={done}>
        {() =>
          rows.length === 0 ? (
            <Empty title="It has not finished any execution yet" />
          ) : (
            <div {...hold}>
              <DataTable
                caption={`Executions that worker ${worker.name} ran, last ended first`}
                columns={COLUMNS}
                rows={rows.map((row) => row.item)}
                rowKey={(one) => one.executionId}
                href={addressOf}
                phone={(one) => (
                  <div>
                    <div className="row">
                      <span className="gr el">
                        <JobLink execution={one} />
                      </span>
                      <StateChip status={one.status} />
                    </div>
                    <div className="el">
                      <WhatCame execution={one} />
                    </div>
                  </div>
                )}
              />
            </div>
          )
        }
      </Loaded>
    </Panel>
  );
}

function lastEnded(items: readonly Execution[]): Execution[] {
  return [...items].sort((one, other) => Date.parse(endOf(other)) - Date.parse(endOf(one))).slice(0, LIMIT);
}

// One that will be retried has not ended; its last attempt started then.
function endOf(one: Execution): string {
  return one.completedAt ?? one.startedAt ?? "";
}

function WhatCame({ execution }: { execution: Execution }) {
  if (!execution.errorMessage) return <Arguments execution={execution} />;
  return (
    <Link href={addressOf(execution)} className="mono" title={execution.errorMessage}>
      {shortError(execution.errorMessage)}
    </Link>
  );
}

function Took({ execution }: { execution: Execution }) {
  if (execution.startedAt === null || execution.completedAt === null) return <span className="d3">—</span>;
  return <Duration from={execution.startedAt} to={execution.completedAt} />;
}
