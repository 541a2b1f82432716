import { Link } from "wouter";
import { Count } from "../../components/Count";
import { type Column, DataTable } from "../../components/DataTable";
import { Panel } from "../../components/Panel";
import { Empty, Loaded } from "../../components/States";
import { Age } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { rate } from "../../lib/format";
import { useHeld } from "../findings/useHeld";
import { Depth, QueueName, QueueState } from "../queues/cells";
import { byNeed, emptyIn, type Outlook, outlookWords } from "../queues/words";

const COLUMNS: readonly Column<Outlook>[] = [
  { key: "queue", head: "queue", cell: (queue) => <QueueName queue={queue} /> },
  { key: "state", head: "state", cell: (queue) => <QueueState queue={queue} />, width: 116 },
  { key: "queued", head: "queued", cell: (queue) => <Count value={queue.queued} />, isNumber: true, width: 76 },
  {
    key: "depth",
    head: <span className="unseen">last hour</span>,
    cell: (queue) => <Depth queue={queue} />,
    width: 96,
  },
  { key: "oldest", head: "oldest", cell: (queue) => <Age since={queue.oldestAt} />, isNumber: true, width: 84 },
  {
    key: "in",
    head: "in /s",
    cell: (queue) => <span className="d2">{rate(queue.inPerS)}</span>,
    isNumber: true,
    width: 60,
  },
  {
    key: "out",
    head: "out /s",
    cell: (queue) => <span className="d2">{rate(queue.outPerS)}</span>,
    isNumber: true,
    width: 60,
  },
  {
    key: "empty",
    head: "empty in",
    cell: (queue) => <span className="d2">{emptyIn(queue)}</span>,
    isNumber: true,
    width: 84,
  },
];

// Queues that need a look first. While the pointer is on them they keep their places.
export function QueueSummary({ most }: { most: number }) {
  const outlook = useApi("/outlook", {}, { live: ["pulse", "changes"], everyMs: 2000 });
  const all = outlook.data?.queues ?? [];
  const { rows, hold } = useHeld([...all].sort(byNeed), (queue) => queue.name);
  return (
    <Panel
      title="Queues"
      isFlush
      right={
        <Link href="/queues" className="sm ln d2">
          All {all.length}
        </Link>
      }
    >
      <Loaded what="The queues" query={outlook}>
        {() =>
          rows.length === 0 ? (
            <Empty title="No queue is known">A queue appears with the first job that uses it.</Empty>
          ) : (
            <div {...hold}>
              <DataTable
                caption="Queues, those that need a look first"
                columns={COLUMNS}
                rows={rows.slice(0, most).map((row) => row.item)}
                rowKey={(queue) => queue.name}
                href={(queue) => `/queues/${encodeURIComponent(queue.name)}`}
                phone={(queue) => <OnPhone queue={queue} />}
              />
            </div>
          )
        }
      </Loaded>
    </Panel>
  );
}

function OnPhone({ queue }: { queue: Outlook }) {
  const words = outlookWords(queue);
  return (
    <div className="row">
      <span className="gr el">
        <QueueName queue={queue} />
      </span>
      <span className="sm d2 nw">
        <Count value={queue.queued} /> queued{words && `, ${words}`}
      </span>
      <QueueState queue={queue} />
    </div>
  );
}
