import type { Answer } from "../../api/types";
import { useZone } from "../../hooks/useZone";
import { count, plural } from "../../lib/format";
import { clockTime, dayOf } from "../../lib/zone";
import css from "./Schedules.module.css";

type Quarters = Answer<"/ticks">["quarters"];

const MOST_BARS = 100;
const QUARTER_MS = 900_000;

// Those of frequent schedules are computed, also for times at which the schedules were not there yet: before the first
// tick of all there is none.
export function sinceFirst({ quarters, items }: Answer<"/ticks">): Quarters {
  const first = items[0] === undefined ? 0 : Date.parse(items[0].at);
  return quarters.map((one) => (Date.parse(one.at) + QUARTER_MS <= first ? { ...one, count: 0 } : one));
}

// In a week there is only room for hours.
function hoursOf(quarters: Quarters): Quarters {
  const found = quarters.filter((_, index) => index % 4 === 0);
  return found.map((first, index) => ({
    at: first.at,
    count: quarters.slice(index * 4, index * 4 + 4).reduce((sum, quarter) => sum + quarter.count, 0),
  }));
}

function inBars(quarters: Quarters): Quarters {
  return quarters.length > MOST_BARS ? hoursOf(quarters) : quarters;
}

function unitOf(quarters: Quarters): string {
  return quarters.length > MOST_BARS ? "Ticks per hour" : "Ticks per quarter of an hour";
}

// Ticks per quarter hour: the denser the ink, the more start together.
export function Herd({ quarters: given }: { quarters: Quarters }) {
  const { zone } = useZone();
  const quarters = inBars(given);
  const counts = quarters.map((quarter) => quarter.count);
  const most = Math.max(1, ...counts);
  const usual = counts.reduce((sum, one) => sum + one, 0) / Math.max(1, counts.length);
  const busiest = quarters.find((quarter) => quarter.count === most);
  const words = (at: string) => `${dayOf(new Date(at), zone)} ${clockTime(new Date(at), zone)}`;
  const label = busiest === undefined ? "no ticks" : `the most are ${count(most)}, at ${words(busiest.at)}`;
  return (
    <div className={css.herd} role="img" aria-label={`Ticks that start together: ${label}`}>
      {quarters.map((quarter) => (
        <span
          key={quarter.at}
          style={{
            opacity: inkOf(quarter.count, most, usual),
          }}
          title={`${words(quarter.at)}: ${plural(quarter.count, "tick")}`}
        />
      ))}
    </div>
  );
}

// Full ink only for a quarter that stands out: where all have the same number of ticks, no herd is seen.
function inkOf(ticks: number, most: number, usual: number): number {
  if (ticks === 0) return 0;
  return 0.12 + 0.88 * (ticks / Math.max(most, 3 * usual)) ** 0.7;
}

// The schedules that lint found to start together: how many, and when they do so next.
export interface HerdFound {
  number: number;
  at: string;
}

export function Busiest({ quarters, herd }: { quarters: Quarters; herd: HerdFound | null }) {
  const { zone } = useZone();
  if (herd !== null)
    return (
      <span className="sm d2">
        {unitOf(quarters)} · {count(herd.number)} schedules start together at {clockTime(new Date(herd.at), zone)}
      </span>
    );
  const most = Math.max(0, ...inBars(quarters).map((quarter) => quarter.count));
  const busiest = inBars(quarters).find((quarter) => quarter.count === most);
  return (
    <span className="sm d2">
      {unitOf(quarters)}
      {busiest !== undefined && most > 1 && ` · at most ${count(most)}, at ${clockTime(new Date(busiest.at), zone)}`}
    </span>
  );
}
