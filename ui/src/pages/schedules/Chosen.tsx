import { Link } from "wouter";
import { Facts } from "../../components/Facts";
import { Icon } from "../../components/Icon";
import { Panel } from "../../components/Panel";
import { Segmented } from "../../components/Segmented";
import { Loaded } from "../../components/States";
import { useApi } from "../../hooks/useApi";
import { useNow } from "../../hooks/useNow";
import { useUrlState } from "../../hooks/useUrlState";
import { useZone } from "../../hooks/useZone";
import { argumentsInLine, duration } from "../../lib/format";
import { Backfill } from "./Backfill";
import { Days, SHOWN_DAYS } from "./Days";
import { type Range, rangeWords } from "./days";
import { ClearSpan, Ledger } from "./Ledger";
import { PauseSchedule } from "./PauseSchedule";
import { RemoveSchedule } from "./RemoveSchedule";
import css from "./Schedules.module.css";
import { spaced } from "./ScheduleTable";
import { NOT_RUN, type Schedule, sumWords, type Tick } from "./words";

interface Props {
  schedule: Schedule;
  range: Range;
  // Those of the schedule on screen; null if they are not all there.
  ticks: readonly Tick[] | null;
  warnings: readonly string[];
}

// The ledger of the chosen schedule, its calendar and its options.
export function Chosen({ schedule, range, ticks, warnings }: Props) {
  const url = useUrlState();
  const now = useNow();
  const { zone } = useZone();
  const isLong = url.one("span") !== null;
  const isMissedOnly = url.one("show") === "missed";
  const times = isLong
    ? { from: `${SHOWN_DAYS}d` }
    : { from: new Date(range.from).toISOString(), to: new Date(range.to).toISOString() };
  const ledger = useApi(
    "/schedules/{schedule}/ticks",
    {
      path: { schedule: schedule.scheduleId },
      query: { ...times, limit: 20, cursor: url.one("cursor") ?? undefined, outcome: isMissedOnly ? [...NOT_RUN] : [] },
    },
    { live: ["pulse", "changes"], everyMs: 2000 },
  );
  const words = isLong ? "in 16 weeks" : rangeWords(range, now, zone);
  const sum = ledger.data && sumWords(ledger.data.summary.outcomes, isLong ? null : statusesOf(ticks));
  const next = schedule.nextAt;
  const isNextShown = next !== null && Date.parse(next) < range.to && Date.parse(next) >= range.from;
  return (
    <div className={css.bottom}>
      <Panel
        title={
          <span className="el" title={schedule.name} style={{ display: "block", maxWidth: 320 }}>
            Ledger of {schedule.name}
          </span>
        }
        note={sum && `${words} ${sum}${ledger.data?.summary.isCapped ? " at least" : ""}`}
        right={
          <>
            {isLong && <ClearSpan />}
            <Segmented
              label="Which ticks"
              value={isMissedOnly ? "missed" : "all"}
              options={[
                { value: "all", label: "All" },
                { value: "missed", label: "Did not run" },
              ]}
              onChange={(value) => url.set({ show: value === "all" ? null : value, cursor: null })}
            />
            <Backfill schedule={schedule} range={range} />
            <PauseSchedule schedule={schedule} />
            <RemoveSchedule schedule={schedule} />
          </>
        }
        isFlush
      >
        {warnings.map((warning) => (
          <p key={warning} className={`sm ${css.warning}`}>
            <Icon name="triangle" className="c-warn" />
            <span>{warning}</span>
          </p>
        ))}
        <Loaded what="The ledger" query={ledger}>
          {(data) => (
            <Ledger schedule={schedule} ledger={data} isMissedOnly={isMissedOnly} nextAt={isNextShown ? next : null} />
          )}
        </Loaded>
      </Panel>
      <div className="stack">
        <Days schedule={schedule} />
        <Panel title="Options">
          <Facts of={factsOf(schedule)} />
        </Panel>
      </div>
    </div>
  );
}

function factsOf(schedule: Schedule) {
  const { app, job } = schedule;
  return {
    job: (
      <Link href={`/jobs/${encodeURIComponent(app)}/${encodeURIComponent(job)}`} className="ln">
        {job}
      </Link>
    ),
    app,
    when: schedule.words,
    cron: schedule.cron === null ? null : <code>{schedule.cron}</code>,
    zone: schedule.tz,
    arguments: <code>{argumentsInLine(schedule.arguments as Record<string, unknown>)}</code>,
    queue: schedule.queue,
    overlap: spaced(schedule.overlap),
    "catches up": `${schedule.catchUp}, within ${duration(schedule.window)}`,
    jitter: schedule.jitter === 0 ? null : duration(schedule.jitter),
    calendars: schedule.calendars.length === 0 ? null : schedule.calendars.join(", "),
    from: spaced(schedule.origin),
  };
}

function statusesOf(ticks: readonly Tick[] | null): Record<string, number> | null {
  if (ticks === null) return null;
  const found: Record<string, number> = {};
  for (const tick of ticks.filter(({ outcome }) => ["fired", "caught_up", "backfilled"].includes(outcome))) {
    const status = tick.status ?? "not ended";
    found[status] = (found[status] ?? 0) + tick.count;
  }
  return found;
}
