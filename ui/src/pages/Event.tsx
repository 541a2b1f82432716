import { Link } from "wouter";
import type { Answer } from "../api/types";
import { Page } from "../app/Page";
import type { PageProps } from "../app/routes";
import { ButtonLink } from "../components/Button";
import { CopyCommand } from "../components/CopyCommand";
import { type Column, DataTable } from "../components/DataTable";
import { Facts } from "../components/Facts";
import { Id } from "../components/Id";
import { Json } from "../components/Json";
import { LeftHistory } from "../components/LeftHistory";
import { Panel } from "../components/Panel";
import { StateChip } from "../components/StateChip";
import { Empty, Loaded } from "../components/States";
import { Time } from "../components/Time";
import { Verdict } from "../components/Verdict";
import { useApi } from "../hooks/useApi";
import { plural } from "../lib/format";
import { ReplayEvent } from "./events/ReplayEvent";

type Detail = Answer<"/events/{event}">;
type Delivery = Detail["started"][number];

const COLUMNS: readonly Column<Delivery>[] = [
  {
    key: "state",
    head: "state",
    cell: (one) =>
      one.status === null ? <span className="d3">left the history</span> : <StateChip status={one.status} />,
    width: 140,
  },
  { key: "job", head: "job", cell: (one) => <JobOf one={one} /> },
  { key: "at", head: "delivered", cell: (one) => <Time at={one.deliveredAt} />, isNumber: true, width: 120 },
  {
    key: "id",
    head: "id",
    cell: (one) => <Id id={one.executionId} href={`/executions/${one.executionId}`} />,
    width: 110,
  },
];

export default function Event({ params }: PageProps) {
  const event = useApi("/events/{event}", { path: { event: params.event ?? "" } }, { live: ["pulse"], everyMs: 2000 });
  return (
    <Page
      title={event.data?.name ?? "Event"}
      up={{ label: "Events", href: "/events" }}
      verdict={event.data && `${event.data.name} ${verdictOf(event.data)}`}
    >
      {event.error?.status === 404 && event.data === undefined ? (
        <Empty title={`There is no event ${params.event}`} actions={<ButtonLink href="/events">All events</ButtonLink>}>
          <LeftHistory />
        </Empty>
      ) : (
        <Loaded what="The event" query={event}>
          {(data) => (
            <div className="stack">
              <Verdict
                text={`${data.name} ${verdictOf(data)}`}
                support={
                  <>
                    emitted <Time at={data.emittedAt} /> {data.actor === null ? "" : `by ${data.actor}`}
                  </>
                }
                actions={<ReplayEvent event={data} />}
              />
              <div className="detail">
                <Started event={data} />
                <div className="stack">
                  <Panel title="Payload">
                    <Json value={data.payload} label="the payload" />
                  </Panel>
                  <Panel title="Event">
                    <Facts
                      of={{
                        id: <Id id={data.eventId} isWhole hasCopy />,
                        subject: data.subject,
                        key: data.key === null ? null : <span className="mono">{data.key}</span>,
                        "replay of": data.replayOf === null ? null : <Id id={data.replayOf} hasCopy />,
                      }}
                    />
                  </Panel>
                </div>
              </div>
            </div>
          )}
        </Loaded>
      )}
    </Page>
  );
}

function Started({ event }: { event: Detail }) {
  return (
    <Panel title="What it started" note={plural(event.deliveries, "execution")} isFlush>
      {event.started.length === 0 ? (
        <Empty title={event.isDelivered ? "No job or workflow subscribes to it" : "It is being delivered"}>
          <CopyCommand command="rota events subscribers" />
        </Empty>
      ) : (
        <DataTable
          caption="Executions that the event started"
          columns={COLUMNS}
          rows={event.started}
          rowKey={(one) => one.executionId}
          href={(one) => `/executions/${one.executionId}`}
          phone={(one) => (
            <div className="row">
              {one.status !== null && <StateChip status={one.status} />}
              <span className="gr el">
                <JobOf one={one} />
              </span>
              <Time at={one.deliveredAt} />
            </div>
          )}
        />
      )}
    </Panel>
  );
}

function JobOf({ one }: { one: Delivery }) {
  return (
    <Link href={`/executions/${one.executionId}`} className="ln" title={one.job ?? undefined}>
      {one.job ?? "an execution"}
    </Link>
  );
}

function verdictOf(event: Detail): string {
  if (event.deliveries > 0) return `started ${plural(event.deliveries, "execution")}`;
  return event.isDelivered ? "started nothing" : "is being delivered";
}
