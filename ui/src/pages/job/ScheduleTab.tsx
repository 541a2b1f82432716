import { Link } from "wouter";
import type { Schedule } from "../../api/schema";
import { ButtonLink } from "../../components/Button";
import { DataTable } from "../../components/DataTable";
import { Facts } from "../../components/Facts";
import { Id } from "../../components/Id";
import { Panel } from "../../components/Panel";
import { MarkChip } from "../../components/StateChip";
import { Empty, Loaded } from "../../components/States";
import { Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { duration } from "../../lib/format";
import { outcomeWords } from "../schedules/words";
import type { Job } from "./useRuns";

export function ScheduleTab({ job }: { job: Job }) {
  const list = useApi(
    "/schedules",
    { query: { job: job.name, app: job.app, limit: 100 } },
    { live: ["pulse", "changes"], everyMs: 2000 },
  );
  return (
    <Loaded what="Schedules" query={list}>
      {({ items }) =>
        items.length === 0 ? (
          <Panel isFlush>
            <Empty title="No schedule">
              <span>
                It runs when it is asked to, by an event, or after another job. A schedule is written in its definition:
                cron, every, after or at.
              </span>
            </Empty>
          </Panel>
        ) : (
          <div className="stack">
            {(items as Schedule[]).map((schedule) => (
              <One key={schedule.scheduleId} schedule={schedule} />
            ))}
          </div>
        )
      }
    </Loaded>
  );
}

function One({ schedule }: { schedule: Schedule }) {
  const ticks = useApi(
    "/schedules/{schedule}/ticks",
    { path: { schedule: schedule.scheduleId }, query: { limit: 12 } },
    { live: ["pulse"], everyMs: 2000 },
  );
  return (
    <Panel
      title={schedule.name}
      note={schedule.words}
      isFlush
      right={
        <>
          {schedule.paused !== null && (
            <MarkChip icon="pause" colour="warn">
              Paused
            </MarkChip>
          )}
          <ButtonLink isSmall href={`/schedules?of=${encodeURIComponent(schedule.name)}`}>
            Open in Schedules
          </ButtonLink>
        </>
      }
    >
      <div style={{ padding: 12 }}>
        <Facts
          of={{
            next: <Time at={schedule.nextAt} />,
            zone: schedule.tz,
            overlap: schedule.overlap,
            "missed ticks": `${schedule.catchUp}, within ${duration(schedule.window)}`,
            excluded: [...schedule.exclude, ...schedule.calendars].join(", ") || null,
            jitter: schedule.jitter === 0 ? null : duration(schedule.jitter),
          }}
        />
      </div>
      {ticks.data !== undefined && ticks.data.items.length > 0 && (
        <DataTable
          caption={`Latest ticks of ${schedule.name}`}
          columns={[
            { key: "at", head: "tick", cell: (tick) => <Time at={tick.at} />, width: 140 },
            { key: "outcome", head: "outcome", cell: (tick) => <Outcome tick={tick} />, width: 140 },
            { key: "execution", head: "execution", cell: (tick) => <Started id={tick.executionId} /> },
            { key: "count", head: "ticks", cell: (tick) => tick.count, isNumber: true, width: 80 },
          ]}
          rows={ticks.data.items}
          rowKey={(tick) => tick.at}
        />
      )}
    </Panel>
  );
}

function Outcome({ tick }: { tick: { outcome: string; status: string | null } }) {
  const words = outcomeWords(tick.outcome, tick.status);
  return <MarkChip {...words}>{words.word}</MarkChip>;
}

function Started({ id }: { id: string | null }) {
  if (id === null) return <span className="d3">none</span>;
  return (
    <Link href={`/executions/${id}`} className="ln">
      <Id id={id} />
    </Link>
  );
}
