import { Link } from "wouter";
import type { Item } from "../api/types";
import { Page } from "../app/Page";
import { CopyCommand } from "../components/CopyCommand";
import { type Column, DataTable } from "../components/DataTable";
import { Id } from "../components/Id";
import { NewPill } from "../components/NewPill";
import { Pager } from "../components/Pager";
import { Panel } from "../components/Panel";
import { Empty, Loaded } from "../components/States";
import { Time } from "../components/Time";
import { Verdict } from "../components/Verdict";
import { useApi } from "../hooks/useApi";
import { useSteady } from "../hooks/useSteady";
import { useUrlState } from "../hooks/useUrlState";
import { plural } from "../lib/format";
import { EventFilters } from "./events/EventFilters";
import { Receivers } from "./events/Receivers";

type Event = Item<"/events">;

const COLUMNS: readonly Column<Event>[] = [
  {
    key: "name",
    head: "event",
    cell: (event) => (
      <Link href={`/events/${event.eventId}`} className="ln" title={event.name}>
        {event.name}
      </Link>
    ),
  },
  {
    key: "subject",
    head: "subject",
    cell: (event) => <span className="mono sm el">{event.subject ?? "—"}</span>,
    width: "14%",
  },
  {
    key: "payload",
    head: "payload",
    cell: (event) => (
      <span className="mono sm d2 el" title={event.payloadStart}>
        {event.payloadStart}
      </span>
    ),
  },
  { key: "started", head: "started", cell: (event) => <Receivers event={event} />, width: 116 },
  {
    key: "actor",
    head: "emitted by",
    cell: (event) => <span className="sm d2 el">{event.actor ?? "—"}</span>,
    width: 116,
  },
  { key: "at", head: "emitted", cell: (event) => <Time at={event.emittedAt} />, isNumber: true, width: 110 },
  { key: "id", head: "id", cell: (event) => <Id id={event.eventId} />, width: 110 },
];

export default function Events() {
  const url = useUrlState();
  const query = {
    limit: 50,
    name: url.one("name") ?? undefined,
    subject: url.one("subject") ?? undefined,
    cursor: url.one("cursor") ?? undefined,
  };
  const events = useApi("/events", { query }, { live: ["pulse"], everyMs: 2000 });
  const newest = events.isPlaceholderData ? undefined : events.data?.items;
  const { rows, fresh, show } = useSteady(JSON.stringify(query), newest, (event) => event.eventId);
  const isFiltered = query.name !== undefined || query.subject !== undefined;
  return (
    <Page title="Events" verdict={events.data && verdictOf(events.data.items, isFiltered)}>
      <Loaded what="Events" query={events}>
        {({ items, nextCursor, previousCursor }) => (
          <div className="stack">
            <Verdict
              text={verdictOf(items, isFiltered)}
              support="An event starts the jobs and workflows that subscribe to its name, each exactly once."
            />
            {(items.length > 0 || isFiltered) && <EventFilters />}
            <Panel isFlush>
              {items.length === 0 ? (
                <NoEvents isFiltered={isFiltered} />
              ) : (
                <DataTable
                  caption="Events, newest first"
                  columns={COLUMNS}
                  rows={rows}
                  before={
                    fresh > 0 && query.cursor === undefined ? <NewPill number={fresh} onShow={show} /> : undefined
                  }
                  rowKey={(event) => event.eventId}
                  href={(event) => `/events/${event.eventId}`}
                  phone={(event) => <OnPhone event={event} />}
                />
              )}
              {items.length > 0 && (
                <Pager
                  newer={previousCursor ? () => url.set({ cursor: previousCursor }) : undefined}
                  older={nextCursor ? () => url.set({ cursor: nextCursor }) : undefined}
                >
                  {plural(rows.length, "event")} shown
                </Pager>
              )}
            </Panel>
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function verdictOf(items: readonly Event[], isFiltered: boolean): string {
  if (items.length === 0) return isFiltered ? "No event matches" : "No event was emitted yet";
  const unheard = items.filter((event) => event.isDelivered && event.deliveries === 0).length;
  if (unheard === 0) return "Every event shown has started something";
  return `${plural(unheard, "event")} of ${items.length} shown started nothing`;
}

function NoEvents({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No event matches">Names are compared as a whole.</Empty>;
  return (
    <Empty title="Emit the first one">
      <span>Programs emit events, and so do hooks and watched folders:</span>
      <CopyCommand command="rota emit order.paid id=A-17" />
    </Empty>
  );
}

function OnPhone({ event }: { event: Event }) {
  return (
    <div className="col" style={{ gap: 4 }}>
      <div className="row">
        <Link href={`/events/${event.eventId}`} className="ln gr el">
          {event.name}
        </Link>
        <Time at={event.emittedAt} />
      </div>
      <div className="row sm d2">
        <span className="mono gr el">{event.payloadStart}</span>
        <Receivers event={event} />
      </div>
    </div>
  );
}
