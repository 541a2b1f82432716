import { Link } from "wouter";
import { Count } from "../../components/Count";
import { type Column, DataTable } from "../../components/DataTable";
import { Age } from "../../components/Time";
import { rate } from "../../lib/format";
import { useHeld } from "../findings/useHeld";
import { Depth, QueueName, QueueState } from "./cells";
import { PauseButton } from "./PauseButton";
import { ShareBar } from "./ShareBar";
import { byNeed, emptyIn, type Outlook, outlookWords, waitsInWords } from "./words";

const COLUMNS: readonly Column<Outlook>[] = [
  { key: "queue", head: "queue", cell: (queue) => <QueueName queue={queue} /> },
  { key: "state", head: "state", cell: (queue) => <QueueState queue={queue} />, width: 112 },
  { key: "queued", head: "queued", cell: (queue) => <Count value={queue.queued} />, isNumber: true, width: 68 },
  { key: "waiting", head: "waiting", cell: (queue) => <Waiting queue={queue} />, isNumber: true, width: 68 },
  { key: "depth", head: "last hour", cell: (queue) => <Depth queue={queue} width={84} />, width: 104 },
  { key: "running", head: "running", cell: (queue) => <Count value={queue.running} />, isNumber: true, width: 66 },
  { key: "oldest", head: "oldest", cell: (queue) => <Age since={queue.oldestAt} />, isNumber: true, width: 72 },
  { key: "in", head: "in /s", cell: (queue) => rated(queue.inPerS), isNumber: true, width: 56 },
  { key: "out", head: "out /s", cell: (queue) => rated(queue.outPerS), isNumber: true, width: 56 },
  {
    key: "empty",
    head: "empty in",
    cell: (queue) => <span className="d2">{emptyIn(queue)}</span>,
    isNumber: true,
    width: 76,
  },
  {
    key: "slots",
    head: "slots",
    cell: (queue) => <Count value={queue.slots} />,
    isNumber: true,
    width: 52,
    isExtra: true,
  },
  { key: "jobs", head: "by job", cell: (queue) => <ShareBar queue={queue} />, isExtra: true },
  {
    key: "limit",
    head: "at most",
    cell: (queue) => <Count value={queue.maxDepth} />,
    isNumber: true,
    width: 64,
    isExtra: true,
  },
  {
    key: "policy",
    head: "order",
    cell: (queue) => <span className="sm d2">{queue.policy}</span>,
    width: 68,
    isExtra: true,
  },
  {
    key: "act",
    head: <span className="unseen">actions</span>,
    cell: (queue) => (
      <PauseButton name={queue.name} paused={queue.paused} inPerS={queue.inPerS} queued={queue.queued} />
    ),
    isNumber: true,
    width: 92,
  },
];

// Those that need a look first. While the pointer is on the table the rows keep their places.
export function QueueTable({ queues }: { queues: readonly Outlook[] }) {
  const { rows, hold } = useHeld([...queues].sort(byNeed), (queue) => queue.name);
  return (
    <div {...hold}>
      <DataTable
        caption="Queues, those that need a look first"
        columns={COLUMNS}
        rows={rows.map((row) => row.item)}
        rowKey={(queue) => queue.name}
        href={addressOf}
        rowHeight={30}
        phone={(queue) => <OnPhone queue={queue} />}
      />
    </div>
  );
}

function addressOf(queue: Outlook): string {
  return `/queues/${encodeURIComponent(queue.name)}`;
}

// How many wait for something other than a slot; the reasons are its title.
function Waiting({ queue }: { queue: Outlook }) {
  return (
    <span title={waitsInWords(queue) ?? undefined}>
      <Count value={queue.waiting} />
    </span>
  );
}

function rated(perSecond: number) {
  return <span className="d2">{rate(perSecond)}</span>;
}

function OnPhone({ queue }: { queue: Outlook }) {
  const words = waitsInWords(queue) ?? outlookWords(queue);
  return (
    <div className="col" style={{ gap: 4 }}>
      <div className="row">
        <Link href={addressOf(queue)} className="gr el ln">
          {queue.name}
        </Link>
        <QueueState queue={queue} />
      </div>
      <div className="row">
        <span className="gr sm d2">
          <Count value={queue.queued} /> queued{words && `, ${words}`}
        </span>
        <PauseButton name={queue.name} paused={queue.paused} inPerS={queue.inPerS} queued={queue.queued} />
      </div>
    </div>
  );
}
