import { Link } from "wouter";
import type { Answer } from "../../api/types";
import { type Day, Heatmap } from "../../components/Heatmap";
import { Panel } from "../../components/Panel";
import { Loaded } from "../../components/States";
import { useApi } from "../../hooks/useApi";
import { serverNow } from "../../hooks/useNow";
import { useUrlState } from "../../hooks/useUrlState";
import { plural } from "../../lib/format";
import { dayWords, plusDays } from "./days";
import type { Schedule } from "./words";

export const SHOWN_DAYS = 112;

// A square for each day of the last sixteen weeks: the worst outcome of the day.
export function Days({ schedule }: { schedule: Schedule }) {
  const url = useUrlState();
  const found = useApi(
    "/schedules/{schedule}/days",
    { path: { schedule: schedule.scheduleId }, query: { from: `${SHOWN_DAYS}d` } },
    { live: ["pulse"], everyMs: 30_000 },
  );
  return (
    <Panel title="16 weeks" note="each square a day" right={<span className="sm d3">{schedule.tz}</span>}>
      <Loaded what="The days" query={found}>
        {(data) => (
          <div className="col">
            <Heatmap
              days={squaresOf(data)}
              label={sumOf(data)}
              onChoose={(day) => url.set({ day, view: null, span: null, cursor: null })}
            />
            <p className="sm d2">
              {sumOf(data)}{" "}
              {notRunOf(data) > 0 && (
                <Link href={url.href({ span: `${SHOWN_DAYS}d`, show: "missed", cursor: null })} className="ln">
                  Show what did not run
                </Link>
              )}
            </p>
          </div>
        )}
      </Loaded>
    </Panel>
  );
}

function squaresOf({ items, tz }: Answer<"/schedules/{schedule}/days">): Day[] {
  const known = new Map(items.map((day) => [day.day, day]));
  const most = Math.max(1, ...items.map((day) => day.ticks));
  const today = new Intl.DateTimeFormat("en-CA", { timeZone: tz }).format(new Date(serverNow()));
  return Array.from({ length: SHOWN_DAYS }, (_, index) => plusDays(today, index + 1 - SHOWN_DAYS)).map((day) => {
    const found = known.get(day);
    const words = Object.entries(found?.outcomes ?? {}).map(
      ([outcome, number]) => `${number} ${outcome.replaceAll("_", " ")}`,
    );
    const title = `${dayWords(day)}: ${found === undefined ? "no tick" : `${plural(found.ticks, "tick")}, ${words.join(", ")}`}`;
    return { day, worst: found?.worst ?? null, weight: (found?.ticks ?? 0) / most, title };
  });
}

function sumOf(data: Answer<"/schedules/{schedule}/days">): string {
  const total = data.complete + data.incomplete;
  const notRun = notRunOf(data);
  const failed = Math.max(0, data.incomplete - notRun);
  if (total === 0) return "No tick in these days.";
  if (data.incomplete === 0) return `${plural(total, "day")} with ticks, all complete.`;
  const parts = [
    `${data.complete} complete`,
    ...(notRun > 0 ? [`${notRun} with ticks that did not run`] : []),
    ...(failed > 0 ? [`${failed} with failures`] : []),
  ];
  return `${plural(total, "day")} with ticks: ${parts.join(", ")}.`;
}

const MISSED = ["overlap", "missed", "outside_window", "unknown_job"];

// Days with a tick that should have started something and did not. The others that are not complete have failures.
function notRunOf({ items }: Answer<"/schedules/{schedule}/days">): number {
  return items.filter((day) => MISSED.some((outcome) => outcome in day.outcomes)).length;
}
