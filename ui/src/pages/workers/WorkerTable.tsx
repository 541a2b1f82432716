import { Link } from "wouter";
import type { Item } from "../../api/types";
import { Bar } from "../../components/Bar";
import { type Column, DataTable, type Group } from "../../components/DataTable";
import { MarkChip } from "../../components/StateChip";
import { Duration, Time } from "../../components/Time";
import { rangeWords } from "../../hooks/useTimeRange";
import { plural } from "../../lib/format";
import { DrainButton } from "./DrainButton";
import { isStopped, offersOf, poolOf, stateOf, troubleOf } from "./words";

type Worker = Item<"/workers">;

const COLUMNS: readonly Column<Worker>[] = [
  { key: "worker", head: "worker", cell: (worker) => <Name worker={worker} />, width: 180 },
  {
    key: "state",
    head: "state",
    cell: (worker) => <MarkChip {...stateOf(worker)}>{stateOf(worker).word}</MarkChip>,
    width: 180,
  },
  { key: "offers", head: "offers", cell: (worker) => <span className="sm d2">{offersOf(worker) || "—"}</span> },
  { key: "slots", head: "slots busy", cell: (worker) => <Use worker={worker} />, width: 200 },
  { key: "beat", head: "heartbeat", cell: (worker) => <Time at={worker.lastHeartbeat} />, isNumber: true, width: 110 },
  {
    key: "up",
    head: "up for",
    cell: (worker) => <Duration from={worker.startedAt} to={worker.stoppedAt} />,
    isNumber: true,
    width: 90,
  },
  { key: "code", head: "code and trouble", cell: (worker) => <Code worker={worker} /> },
  {
    key: "act",
    head: <span className="unseen">actions</span>,
    cell: (worker) => <DrainButton worker={worker} />,
    isNumber: true,
    width: 104,
  },
];

export function WorkerTable({ workers, since }: { workers: readonly Worker[]; since: string }) {
  return (
    <DataTable
      caption="Workers by pool"
      columns={COLUMNS}
      groups={groupsOf(workers, since)}
      rowKey={(worker) => worker.workerId}
      href={addressOf}
      rowHeight={30}
      phone={(worker) => <OnPhone worker={worker} />}
    />
  );
}

function groupsOf(workers: readonly Worker[], since: string): Group<Worker>[] {
  const live = workers.filter((worker) => !isStopped(worker));
  const pools = [...new Set(live.map(poolOf))].sort();
  const groups = pools.map((pool) =>
    poolGroup(
      pool,
      live.filter((worker) => poolOf(worker) === pool),
    ),
  );
  const stopped = workers.filter(isStopped);
  if (stopped.length > 0)
    groups.push({ key: "stopped", head: { worker: <b>Stopped in the {rangeWords(since)}</b> }, rows: stopped });
  return groups;
}

function poolGroup(pool: string, rows: readonly Worker[]): Group<Worker> {
  const busy = rows.reduce((sum, worker) => sum + worker.busy, 0);
  const slots = rows.reduce((sum, worker) => sum + worker.slots, 0);
  const name = (
    <>
      <b>Pool {pool}</b> <span className="d3">{plural(rows.length, "worker")}</span>
    </>
  );
  return { key: `pool ${pool}`, head: { worker: name, slots: <Slots busy={busy} slots={slots} />, beat: "" }, rows };
}

function addressOf(worker: Worker): string {
  return `/workers/${worker.workerId}`;
}

function Name({ worker }: { worker: Worker }) {
  return (
    <Link href={addressOf(worker)} className="ln">
      {worker.name}
    </Link>
  );
}

// A worker that has stopped holds nothing any more.
function Use({ worker }: { worker: Worker }) {
  if (!isStopped(worker)) return <Slots busy={worker.busy} slots={worker.slots} />;
  return (
    <span className="sm d2">
      stopped at <Time at={worker.stoppedAt} />
    </span>
  );
}

function Slots({ busy, slots }: { busy: number; slots: number }) {
  const text = `${busy} of ${slots}`;
  return (
    <span className="row">
      <span className="num" style={{ width: 56 }}>
        {text}
      </span>
      <Bar
        parts={[{ share: slots === 0 ? 0 : busy / slots, colour: "running" }]}
        label={`${text} slots busy`}
        width={110}
      />
    </span>
  );
}

function Code({ worker }: { worker: Worker }) {
  const trouble = troubleOf(worker);
  return (
    <span className="sm d2" title={trouble ?? undefined}>
      {trouble ?? <span className="mono">{worker.version}</span>}
    </span>
  );
}

function OnPhone({ worker }: { worker: Worker }) {
  return (
    <div className="col" style={{ gap: 4 }}>
      <div className="row">
        <span className="gr el">
          <Name worker={worker} />
        </span>
        <MarkChip {...stateOf(worker)}>{stateOf(worker).word}</MarkChip>
      </div>
      <div className="row">
        <span className="gr">
          <Use worker={worker} />
        </span>
        <DrainButton worker={worker} />
      </div>
    </div>
  );
}
