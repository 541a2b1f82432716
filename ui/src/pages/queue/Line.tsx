import { Link } from "wouter";
import type { Item } from "../../api/types";
import { type Column, DataTable } from "../../components/DataTable";
import { Icon } from "../../components/Icon";
import { Id } from "../../components/Id";
import { Pager } from "../../components/Pager";
import { Panel } from "../../components/Panel";
import { Empty, Loaded } from "../../components/States";
import { Age } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { useUrlState } from "../../hooks/useUrlState";
import { argumentsInLine, count } from "../../lib/format";
import { useHeld } from "../findings/useHeld";
import { type Outlook, waitsInWords } from "../queues/words";

// The members that FIELDS names are there.
type Execution = Required<Item<"/executions">>;
interface Row {
  // Its place in the line; null if it has left it while the reader looks.
  place: number | null;
  execution: Execution;
}

const LIMIT = 25;
const FIELDS = "executionId,job,app,arguments,priority,runAt";

const COLUMNS: readonly Column<Row>[] = [
  { key: "place", head: "place", cell: (row) => <Place place={row.place} />, width: 76 },
  {
    key: "job",
    head: "job",
    cell: ({ execution }) => (
      <Link href={addressOf(execution)} className="ln" title={execution.job}>
        {execution.job}
      </Link>
    ),
    width: "26%",
  },
  {
    key: "arguments",
    head: "arguments",
    cell: ({ execution }) => {
      const text = argumentsInLine(execution.arguments as Record<string, unknown>);
      return (
        <span className="mono d2" title={text}>
          {text}
        </span>
      );
    },
  },
  {
    key: "priority",
    head: "priority",
    cell: ({ execution }) => priorityOf(execution.priority),
    width: 72,
    isExtra: true,
  },
  {
    key: "waits",
    head: "due for",
    cell: ({ execution }) => <Age since={execution.runAt} />,
    isNumber: true,
    width: 84,
  },
  {
    key: "id",
    head: "id",
    cell: ({ execution }) => <Id id={execution.executionId} href={addressOf(execution)} />,
    isNumber: true,
    width: 96,
    isExtra: true,
  },
];

// What waits, in the order of the starts: the lowest rank is next.
export function Line({ queue }: { queue: Outlook }) {
  const url = useUrlState();
  const cursor = url.one("cursor");
  const offset = cursor === null ? 0 : Number(url.one("after") ?? 0);
  const line = useApi(
    "/executions",
    {
      query: {
        status: ["queued"],
        queue: [queue.name],
        order: "rank",
        limit: LIMIT,
        fields: FIELDS,
        cursor: cursor ?? undefined,
      },
    },
    { live: ["pulse", "changes"], everyMs: 2000 },
  );
  const { rows, hold } = useHeld((line.data?.items ?? []) as Execution[], (execution) => execution.executionId);
  const waiting = rows.filter((row) => !row.isGone);
  const placed = rows.map(({ item, isGone }) => ({
    place: isGone ? null : offset + waiting.findIndex((row) => row.item === item) + 1,
    execution: item,
  }));
  const { nextCursor = null, previousCursor = null } = line.data ?? {};
  const go = (to: string, after: number) => () =>
    url.set(after <= 0 ? { cursor: null, after: null } : { cursor: to, after: String(after) });
  return (
    <Panel title="Line" note={noteOf(queue)} isFlush>
      <Loaded what="The line" query={line}>
        {() =>
          rows.length === 0 ? (
            <EmptyLine queue={queue} />
          ) : (
            <div {...hold}>
              <DataTable
                caption={`Executions that wait in queue ${queue.name}, the next one first`}
                columns={COLUMNS}
                rows={placed}
                rowKey={(row) => row.execution.executionId}
                href={(row) => addressOf(row.execution)}
                phone={(row) => <OnPhone row={row} />}
              />
            </div>
          )
        }
      </Loaded>
      {(nextCursor !== null || previousCursor !== null) && (
        <Pager
          newer={previousCursor === null ? undefined : go(previousCursor, offset - LIMIT)}
          words={["Before", "After"]}
          older={nextCursor === null ? undefined : go(nextCursor, offset + waiting.length)}
        >
          {count(offset + 1)} to {count(offset + waiting.length)} of {count(queue.queued)}
        </Pager>
      )}
    </Panel>
  );
}

function noteOf(queue: Outlook): string {
  if (queue.queued === 0) return queue.waiting === 0 ? "empty" : "nothing is ready to start";
  return queue.paused === null ? "the next one first" : "nothing starts while the queue is paused";
}

function Place({ place }: { place: number | null }) {
  if (place === null)
    return (
      <span className="sm d3">
        <Icon name="right" /> left
      </span>
    );
  return place === 1 ? <b>next</b> : <span className="tab d2">{count(place)}</span>;
}

function priorityOf(priority: number) {
  const words: Record<number, string> = { 10: "high", 0: "normal", [-10]: "low" };
  return <span className={priority === 0 ? "d3" : ""}>{words[priority] ?? priority}</span>;
}

function addressOf(execution: Execution): string {
  return `/executions/${execution.executionId}`;
}

function EmptyLine({ queue }: { queue: Outlook }) {
  const held = waitsInWords(queue);
  if (held !== null)
    return (
      <Empty title={held}>
        <span>They come into the line when that has ended.</span>
        <Link href={`/executions?status=waiting&queue=${encodeURIComponent(queue.name)}`} className="ln">
          Executions that wait
        </Link>
      </Empty>
    );
  return (
    <Empty title="The line is empty">
      <span>
        {queue.running === 0
          ? "Nothing of this queue waits or runs."
          : `${count(queue.running)} of this queue run now.`}
      </span>
      <Link href={`/executions?queue=${encodeURIComponent(queue.name)}`} className="ln">
        Executions of this queue
      </Link>
    </Empty>
  );
}

function OnPhone({ row }: { row: Row }) {
  const { place, execution } = row;
  return (
    <div>
      <div className="row">
        <Place place={place} />
        <Link href={addressOf(execution)} className="gr el ln">
          {execution.job}
        </Link>
        <span className="sm d2">
          <Age since={execution.runAt} />
        </span>
      </div>
      <div className="mono d2 el">{argumentsInLine(execution.arguments as Record<string, unknown>)}</div>
    </div>
  );
}
