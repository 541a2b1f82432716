import { type Column, DataTable } from "../../components/DataTable";
import { Id } from "../../components/Id";
import { Panel } from "../../components/Panel";
import { StateChip } from "../../components/StateChip";
import { Empty, Loaded } from "../../components/States";
import { Duration, Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { count } from "../../lib/format";
import { useHeld } from "../findings/useHeld";
import { isStopped, type Worker } from "../workers/words";
import { Arguments, addressOf, type Execution, FIELDS, JobLink } from "./executionCells";

const COLUMNS: readonly Column<Execution>[] = [
  { key: "state", head: "state", cell: (one) => <StateChip status={one.status} />, width: 104 },
  { key: "job", head: "job", cell: (one) => <JobLink execution={one} />, width: "20%" },
  { key: "arguments", head: "arguments", cell: (one) => <Arguments execution={one} /> },
  { key: "for", head: "runs for", cell: (one) => <Duration from={one.startedAt} />, isNumber: true, width: 88 },
  {
    key: "started",
    head: "started",
    cell: (one) => <Time at={one.startedAt} />,
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

// The executions that run on it now.
export function Holds({ worker }: { worker: Worker }) {
  const query = { worker: [worker.workerId], status: ["running" as const], limit: 200, fields: FIELDS };
  const held = useApi("/executions", { query }, { live: ["pulse"], everyMs: 2000, enabled: !isStopped(worker) });
  const { rows, hold } = useHeld((held.data?.items ?? []) as Execution[], (one) => one.executionId);
  if (isStopped(worker)) return null;
  const shown = rows.map(({ item, isGone }) => (isGone ? { ...item, status: "ended" as Execution["status"] } : item));
  return (
    <Panel title="Holds" note={`${count(worker.busy)} of ${count(worker.slots)} slots`} isFlush>
      <Loaded what="What it holds" query={held}>
        {() =>
          rows.length === 0 ? (
            <Empty title="It holds nothing">It takes the next execution of its queues that fits what it offers.</Empty>
          ) : (
            <div {...hold}>
              <DataTable
                caption={`Executions that run on worker ${worker.name}`}
                columns={COLUMNS}
                rows={shown}
                rowKey={(one) => one.executionId}
                href={addressOf}
                phone={(one) => (
                  <div>
                    <div className="row">
                      <span className="gr el">
                        <JobLink execution={one} />
                      </span>
                      <Duration from={one.startedAt} />
                    </div>
                    <div className="el">
                      <Arguments execution={one} />
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
