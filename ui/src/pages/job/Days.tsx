import { Link } from "wouter";
import { Panel } from "../../components/Panel";
import { useApi } from "../../hooks/useApi";
import { useNow } from "../../hooks/useNow";
import { useZone } from "../../hooks/useZone";
import { plural } from "../../lib/format";
import { dayOf } from "../../lib/zone";
import css from "./Job.module.css";
import type { Job } from "./useRuns";

const AHEAD_DAYS = 8;
const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];

interface Day {
  worst: string;
  words: string;
}

// Last month and this one: the worst outcome of each day, and the days of the coming week with a tick.
export function Days({ job }: { job: Job }) {
  const { zone } = useZone();
  const now = useNow();
  const today = dayOf(new Date(now), zone);
  const days = useDays(job);
  const planned = usePlanned(job, now);
  return (
    <Panel title="Runs by day" right={<span className="sm d3 el">{job.schedules[0]?.words ?? "in UTC"}</span>}>
      <div className={css.months}>
        {[-1, 0].map((offset) => (
          <Month key={offset} first={monthOf(today, offset)} today={today} days={days} planned={planned} job={job} />
        ))}
      </div>
      <p className={`row wrap xs d3 ${css.legend}`}>
        <span>
          <i className={css.success} /> ran
        </span>
        <span>
          <i className={css.failed} /> failed or missed
        </span>
        <span>
          <i className={css.overlap} /> overlapped
        </span>
        <span>
          <i className={css.running} /> runs
        </span>
        <span>
          <i className={css.planned} /> to come
        </span>
      </p>
    </Panel>
  );
}

interface MonthProps {
  first: string;
  today: string;
  days: ReadonlyMap<string, Day>;
  planned: ReadonlySet<string>;
  job: Job;
}

function Month({ first, today, days, planned, job }: MonthProps) {
  const start = new Date(`${first}T00:00Z`);
  const length = new Date(Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 0)).getUTCDate();
  const before = (start.getUTCDay() + 6) % 7;
  return (
    <div>
      <b className="sm">
        {MONTHS[start.getUTCMonth()]} {start.getUTCFullYear()}
      </b>
      <div className={css.month}>
        {["M", "T", "W", "T", "F", "S", "S"].map((name, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the days of a week keep their places.
          <span key={index} className="d3">
            {name}
          </span>
        ))}
        {Array.from({ length: before }, (_, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: places without a day have no other name.
          <span key={`before ${index}`} />
        ))}
        {Array.from({ length }, (_, index) => {
          const day = `${first.slice(0, 8)}${String(index + 1).padStart(2, "0")}`;
          const found = days.get(day);
          const mark = found === undefined ? (planned.has(day) ? css.planned : "") : (css[found.worst] ?? css.other);
          const classes = `${css.day} ${mark} ${day === today ? css.today : ""}`;
          const words = `${day}: ${found?.words ?? (planned.has(day) ? "to come" : "nothing")}`;
          return found === undefined ? (
            <span key={day} className={classes} title={words}>
              {index + 1}
            </span>
          ) : (
            <Link key={day} href={dayAddress(job, day)} className={classes} title={words} aria-label={words}>
              {index + 1}
            </Link>
          );
        })}
      </div>
    </div>
  );
}

function dayAddress(job: Job, day: string): string {
  const until = new Date(Date.parse(`${day}T00:00Z`) + 86_400_000).toISOString();
  return `/executions?job=${encodeURIComponent(job.name)}&app=${encodeURIComponent(job.app)}&since=${day}T00:00:00Z&until=${encodeURIComponent(until)}`;
}

function monthOf(today: string, offset: number): string {
  const at = new Date(`${today.slice(0, 7)}-01T00:00Z`);
  at.setUTCMonth(at.getUTCMonth() + offset);
  return at.toISOString().slice(0, 10);
}

// Of a job with a schedule the ticks count, because a missed one has no execution; of another its executions.
function useDays(job: Job): ReadonlyMap<string, Day> {
  const schedule = job.schedules[0];
  const ticks = useApi(
    "/schedules/{schedule}/days",
    { path: { schedule: schedule?.scheduleId ?? "" }, query: { from: "62d" } },
    { enabled: schedule !== undefined, live: ["pulse"], everyMs: 10_000 },
  );
  const query = { of: "executions" as const, by: "day" as const, job: [job.name], app: [job.app], createdFrom: "62d" };
  const options = { enabled: schedule === undefined, live: ["pulse"], everyMs: 10_000 } as const;
  const all = useApi("/counts", { query }, options);
  const failed = useApi("/counts", { query: { ...query, status: ["failed"] } }, options);
  if (schedule !== undefined)
    return new Map((ticks.data?.items ?? []).map((one) => [one.day, { worst: one.worst, words: outcomeWords(one) }]));
  const bad = new Map((failed.data?.groups ?? []).map((group) => [group.value, group.count]));
  return new Map(
    (all.data?.groups ?? []).map((group) => {
      const lost = bad.get(group.value) ?? 0;
      const words = `${plural(group.count, "execution")}${lost === 0 ? "" : `, ${lost} failed`}`;
      return [group.value ?? "", { worst: lost > 0 ? "failed" : "success", words }];
    }),
  );
}

function outcomeWords({ ticks, worst }: { ticks: number; worst: string }): string {
  return `${plural(ticks, "tick")}, ${worst === "success" ? "all ran" : `worst: ${worst}`}`;
}

function usePlanned(job: Job, now: number): ReadonlySet<string> {
  const { zone } = useZone();
  const schedule = job.schedules[0];
  const hour = Math.floor(now / 3_600_000) * 3_600_000;
  const query = {
    from: new Date(hour).toISOString(),
    to: new Date(hour + (AHEAD_DAYS * 24 - 1) * 3_600_000).toISOString(),
    schedule: [schedule?.scheduleId ?? ""],
  };
  const ahead = useApi("/ticks", { query }, { enabled: schedule !== undefined });
  return new Set(
    (ahead.data?.items ?? []).filter((tick) => tick.isPlanned).map((tick) => dayOf(new Date(tick.at), zone)),
  );
}
