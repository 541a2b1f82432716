import { Link } from "wouter";
import type { Answer } from "../../api/types";
import { Bar } from "../../components/Bar";
import { Bytes } from "../../components/Count";
import { type Column, DataTable, type Group } from "../../components/DataTable";
import { MarkChip } from "../../components/StateChip";
import { Age, Duration, Time } from "../../components/Time";
import { useIsPhone } from "../../hooks/useMedia";
import { rangeWords } from "../../hooks/useTimeRange";
import { count, plural } from "../../lib/format";
import { DrainButton } from "./DrainButton";
import { Heartbeats } from "./Heartbeats";
import { endedInWords, isStopped, offersOf, poolOf, stateOf, troubleOf, type Worker } from "./words";

type Load = Answer<"/load">;

const COLUMNS: readonly Column<Worker>[] = [
  { key: "worker", head: "worker", cell: (worker) => <Name worker={worker} />, width: 130 },
  {
    key: "state",
    head: "state",
    cell: (worker) => <State worker={worker} />,
    width: 196,
  },
  {
    key: "offers",
    head: "offers",
    cell: (worker) => <span className="sm d2">{offersOf(worker) || "—"}</span>,
    width: 80,
    isExtra: true,
  },
  { key: "slots", head: "slots busy", cell: (worker) => <SlotsOrEnd worker={worker} />, width: 170 },
  {
    key: "memory",
    head: "memory",
    cell: (worker) => !isStopped(worker) && <Bytes value={worker.memoryBytes} />,
    isNumber: true,
    width: 84,
  },
  { key: "beat", head: "heartbeats", cell: (worker) => <Heartbeats worker={worker} />, width: 142, isExtra: true },
  {
    key: "up",
    head: "up for",
    cell: (worker) =>
      isStopped(worker) ? <Duration from={worker.startedAt} to={worker.stoppedAt} /> : <Age since={worker.startedAt} />,
    isNumber: true,
    width: 92,
  },
  { key: "code", head: "code and trouble", cell: (worker) => <Code worker={worker} /> },
  {
    key: "act",
    head: <span className="unseen">actions</span>,
    cell: (worker) => <DrainButton worker={worker} />,
    isNumber: true,
    width: 88,
  },
];

interface Props {
  workers: readonly Worker[];
  since: string;
  // What waits, to say which pools lack a worker; undefined until it is known.
  load: Load | undefined;
}

export function WorkerTable({ workers, since, load }: Props) {
  return (
    <DataTable
      caption="Workers by pool"
      columns={COLUMNS}
      groups={groupsOf(workers, since, load)}
      rowKey={(worker) => worker.workerId}
      href={addressOf}
      rowHeight={30}
      phone={(worker) => <OnPhone worker={worker} />}
    />
  );
}

function groupsOf(workers: readonly Worker[], since: string, load: Load | undefined): Group<Worker>[] {
  const live = workers.filter((worker) => !isStopped(worker));
  const unserved = lackingPools(load);
  const pools = [...new Set([...live.map(poolOf), ...unserved.keys()])].sort();
  const groups = pools.map((pool) => poolGroup(pool, live, unserved.get(pool) ?? 0));
  const stopped = workers.filter(isStopped);
  if (stopped.length > 0)
    groups.push({ key: "stopped", head: { worker: <b>Stopped in the {rangeWords(since)}</b> }, rows: stopped });
  return groups;
}

// How many executions wait for each pool that has no slot for them. What is paused waits for other reasons.
export function lackingPools(load: Load | undefined): Map<string, number> {
  const found = new Map<string, number>();
  for (const group of load?.groups ?? [])
    if (group.ready > 0 && group.slots === 0 && !group.paused)
      found.set(group.pool, (found.get(group.pool) ?? 0) + group.ready);
  return found;
}

function poolGroup(pool: string, live: readonly Worker[], lacking: number): Group<Worker> {
  const rows = live.filter((worker) => poolOf(worker) === pool);
  const busy = rows.reduce((sum, worker) => sum + worker.busy, 0);
  const slots = rows.reduce((sum, worker) => sum + worker.slots, 0);
  const name = (
    <>
      <b>{pool === "all" ? "All pools" : `Pool ${pool}`}</b>{" "}
      <span className="d3">{rows.length === 0 ? "no worker" : plural(rows.length, "worker")}</span>
    </>
  );
  const head = {
    worker: name,
    slots: slots === 0 ? "" : <Slots busy={busy} slots={slots} />,
    memory: trouble(rows, lacking),
  };
  return { key: `pool ${pool}`, head, rows };
}

function trouble(rows: readonly Worker[], lacking: number) {
  const full = rows.filter((worker) => worker.slots > 0 && worker.busy >= worker.slots);
  if (lacking > 0)
    return (
      <MarkChip icon="octagon-cross" colour="failed">
        {count(lacking)} queued, no worker can run {lacking === 1 ? "it" : "them"}
      </MarkChip>
    );
  if (full.length > 0)
    return (
      <MarkChip icon="triangle" colour="warn">
        full on {full.map((worker) => worker.name).join(", ")}
      </MarkChip>
    );
  return "";
}

// A stopped one says when it stopped.
function State({ worker }: { worker: Worker }) {
  return (
    <span className="row">
      <MarkChip {...stateOf(worker)}>{stateOf(worker).word}</MarkChip>
      {isStopped(worker) && (
        <span className="sm d2">
          at <Time at={worker.stoppedAt} />
        </span>
      )}
    </span>
  );
}

function addressOf(worker: Worker): string {
  return `/workers/${worker.workerId}`;
}

function Name({ worker }: { worker: Worker }) {
  return (
    <Link href={addressOf(worker)} className="ln" title={worker.name}>
      {worker.name}
    </Link>
  );
}

function Slots({ busy, slots }: { busy: number; slots: number }) {
  const text = `${busy} of ${slots}`;
  const isPhone = useIsPhone();
  return (
    <span className="row">
      <span className="num" style={{ width: isPhone ? undefined : 56 }}>
        {text}
      </span>
      <Bar
        parts={[{ share: slots === 0 ? 0 : busy / slots, colour: "running" }]}
        label={`${text} slots busy`}
        width={90}
      />
    </span>
  );
}

function SlotsOrEnd({ worker }: { worker: Worker }) {
  if (!isStopped(worker)) return <Slots busy={worker.busy} slots={worker.slots} />;
  const words = endedInWords(worker);
  return (
    <span className="sm d2" title={words}>
      {words}
    </span>
  );
}

function Code({ worker }: { worker: Worker }) {
  const words = isStopped(worker) ? worker.ended?.cause : troubleOf(worker);
  return (
    <span className="sm d2" title={words ?? undefined}>
      {words ?? <span className="mono">{codeOf(worker)}</span>}
    </span>
  );
}

function codeOf(worker: Worker): string {
  return worker.deploy === null ? worker.version : `${worker.version}, deploy ${worker.deploy}`;
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
          <SlotsOrEnd worker={worker} />
        </span>
        <DrainButton worker={worker} />
      </div>
    </div>
  );
}
