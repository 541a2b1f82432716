import { useRef } from "react";
import type { Answer } from "../api/types";
import { Page } from "../app/Page";
import { Button } from "../components/Button";
import { CopyCommand } from "../components/CopyCommand";
import { FilterTokens } from "../components/FilterTokens";
import { Panel } from "../components/Panel";
import { Segmented } from "../components/Segmented";
import { Empty, Loaded } from "../components/States";
import { Verdict } from "../components/Verdict";
import { useApi } from "../hooks/useApi";
import { useNow } from "../hooks/useNow";
import { useUrlState } from "../hooks/useUrlState";
import { useZone } from "../hooks/useZone";
import { dayOf } from "../lib/zone";
import { Chosen } from "./schedules/Chosen";
import { isDay, plusDays, rangeOf, rangeTitle, type Span } from "./schedules/days";
import type { HerdFound } from "./schedules/Herd";
import { Legend } from "./schedules/Legend";
import { NewSchedule } from "./schedules/NewSchedule";
import { ScheduleTable } from "./schedules/ScheduleTable";
import { Support } from "./schedules/Support";
import { isNamed, refOf, type Schedule, troubleOf, verdictOf } from "./schedules/words";

const VIEWS = [
  { value: "day", label: "Day" },
  { value: "week", label: "Week" },
  { value: "list", label: "List" },
] as const;
// More ticks of one schedule than this are drawn as bars.
const MOST_MARKS = 80;

export default function Schedules() {
  const url = useUrlState();
  const now = useNow();
  const { zone, label } = useZone();
  const today = dayOf(new Date(now), zone);
  const day = url.one("day");
  const view = url.one("view");
  const span: Span = view === "week" || view === "list" ? view : "day";
  const range = rangeOf(span, isDay(day) && span !== "list" ? day : today, zone);
  const query = {
    name: url.one("name") ?? undefined,
    app: url.one("app") ?? undefined,
    job: url.one("job") ?? undefined,
  };
  const schedules = useApi(
    "/schedules",
    { query: { ...query, state: url.one("state") ?? undefined, limit: 1000, order: "asc" } },
    { live: ["pulse", "changes"], everyMs: 2000 },
  );
  const [from, to] = [new Date(range.from).toISOString(), new Date(range.to).toISOString()];
  const ticks = useApi(
    "/ticks",
    { query: { from, to, merge: MOST_MARKS } },
    { live: ["pulse", "changes"], everyMs: 5000 },
  );
  const lint = useApi("/lint", {}, { live: ["changes"], everyMs: 30_000 });
  const all = schedules.data?.items ?? [];
  const chosen = useChosen(all, url.one("of"));
  const warningsOf = (schedule: Schedule) =>
    (lint.data?.findings ?? [])
      .filter((finding) => finding.schedules.includes(`${schedule.app}.${schedule.name}`))
      .map((finding) => finding.message);
  const isFiltered = ["name", "app", "job", "state"].some((name) => url.one(name) !== null);
  const go = (days: number | null) =>
    url.set({ day: days === null ? null : plusDays(isDay(day) ? day : today, days), cursor: null, span: null });
  const step = span === "day" ? 1 : 7;
  return (
    <Page
      title="Schedules"
      context={
        <Segmented
          label="View"
          value={span}
          options={VIEWS}
          onChange={(value) => url.set({ view: value === "day" ? null : value, cursor: null })}
        />
      }
      verdict={schedules.data && verdictOf(all)}
    >
      <Loaded what="Schedules" query={schedules}>
        {({ items }) => (
          <div className="stack">
            <Verdict
              text={verdictOf(items)}
              support={items.length > 0 && <Support schedules={items} ticks={ticks.data} range={range} />}
              actions={<NewSchedule />}
            />
            {(isFiltered || items.length > 20) && <Filters />}
            {items.length === 0 ? (
              <Panel>{isFiltered ? <NoneFits /> : <NoSchedule />}</Panel>
            ) : (
              <>
                <Panel
                  title={span === "list" ? "All schedules" : rangeTitle(range)}
                  note={
                    span !== "list" && (
                      <span className="row">
                        <Button isSmall kind="quiet" icon="left" aria-label="Earlier" onClick={() => go(-step)} />
                        <Button isSmall disabled={day === null || day === today} onClick={() => go(null)}>
                          Today
                        </Button>
                        <Button isSmall kind="quiet" icon="right" aria-label="Later" onClick={() => go(step)} />
                        <Legend />
                      </span>
                    )
                  }
                  right={<span className="sm d3 not-phone">times in {label}; each schedule keeps its own zone</span>}
                  isFlush
                >
                  <ScheduleTable
                    schedules={items}
                    ticks={ticks.data}
                    range={range}
                    herd={herdOf(lint.data?.findings ?? [], items)}
                    warningsOf={warningsOf}
                    chosen={chosen}
                    href={(schedule) => url.href({ of: refOf(schedule, items), cursor: null, span: null })}
                  />
                </Panel>
                {chosen !== undefined && (
                  <Chosen
                    schedule={chosen}
                    range={range}
                    ticks={
                      ticks.data === undefined || ticks.data.dense.includes(chosen.scheduleId)
                        ? null
                        : ticks.data.items.filter((tick) => tick.scheduleId === chosen.scheduleId)
                    }
                    warnings={warningsOf(chosen)}
                  />
                )}
              </>
            )}
          </div>
        )}
      </Loaded>
    </Page>
  );
}

// The largest herd that lint has found. Most of its schedules fire at its time next.
function herdOf(findings: Answer<"/lint">["findings"], all: readonly Schedule[]): HerdFound | null {
  const herds = findings.filter(({ kind }) => kind === "herd");
  const largest = herds.sort((one, other) => other.schedules.length - one.schedules.length)[0];
  if (largest === undefined) return null;
  const times = new Map<string, number>();
  for (const { app, name, nextAt } of all)
    if (nextAt !== null && largest.schedules.includes(`${app}.${name}`))
      times.set(nextAt, (times.get(nextAt) ?? 0) + 1);
  const [next] = [...times].sort(([, one], [, other]) => other - one);
  return next === undefined ? null : { number: largest.schedules.length, at: next[0] };
}

// Without a choice the first one with trouble, else the first; it stays, whatever happens to the others.
function useChosen(all: readonly Schedule[], of: string | null): Schedule | undefined {
  const first = useRef<string | null>(null);
  const named = of === null ? undefined : all.find((schedule) => isNamed(schedule, of));
  if (named !== undefined) return named;
  const kept = all.find((schedule) => schedule.scheduleId === first.current);
  const found = kept ?? all.find((schedule) => troubleOf(schedule) !== null) ?? all[0];
  first.current = found?.scheduleId ?? null;
  return found;
}

function Filters() {
  const url = useUrlState();
  const names = ["name", "app", "job", "state"];
  return (
    <FilterTokens
      filters={names.map((name) => ({ name, options: name === "state" ? ["active", "paused"] : undefined }))}
      values={Object.fromEntries(names.map((name) => [name, url.all(name)]))}
      onChange={(name, values) => url.set({ [name]: values.slice(-1), cursor: null })}
    />
  );
}

function NoneFits() {
  const url = useUrlState();
  return (
    <Empty
      title="No schedule fits the filter"
      actions={
        <Button onClick={() => url.set({ name: null, app: null, job: null, state: null })}>Drop the filter</Button>
      }
    />
  );
}

function NoSchedule() {
  return (
    <Empty title="Give a job a schedule">
      <span>In code, with cron or every; or here with New schedule…, once a worker has registered the job.</span>
      <CopyCommand command={'@app.job(cron="0 3 * * *", tz="Europe/Berlin")'} />
    </Empty>
  );
}
