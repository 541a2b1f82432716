import { DayStrip, TICK_MARKS, type TickMark } from "../../components/DayStrip";
import { useNow } from "../../hooks/useNow";
import { useZone } from "../../hooks/useZone";
import { plural } from "../../lib/format";
import { shortTime, type Zone } from "../../lib/zone";
import type { Range } from "./days";
import css from "./Schedules.module.css";
import { kindOf, type Schedule, type Tick } from "./words";

interface Props {
  schedule: Schedule;
  ticks: readonly Tick[];
  range: Range;
}

// The ticks of one schedule in the day or the week on screen.
export function Strip({ schedule, ticks, range }: Props) {
  const now = useNow();
  const { zone } = useZone();
  const { paused } = schedule;
  const passed = (now - range.from) / (range.to - range.from);
  const share = passed > 0 && passed < 0.6 ? passed * 100 : 0;
  return (
    <div className={css.strip}>
      <DayStrip
        from={range.from}
        to={range.to}
        now={now}
        ticks={ticks.map((tick) => markOf(tick, zone, now))}
        label={labelOf(ticks)}
      />
      {paused !== null && (
        <span className={`sm d2 el ${css.paused}`} style={{ left: `calc(${share}% + 12px)` }}>
          <span>
            paused by {paused.by} {shortTime(new Date(paused.at), zone, new Date(now))}
            {paused.note ? `: “${paused.note}”` : ""}
          </span>
        </span>
      )}
    </div>
  );
}

function markOf(tick: Tick, zone: Zone, now: number): TickMark {
  const kind = kindOf(tick);
  const clock = (at: string) => shortTime(new Date(at), zone, new Date(now));
  const word = TICK_MARKS[kind].word;
  const title =
    tick.count > 1 ? `${clock(tick.at)} to ${clock(tick.until)}: ${tick.count} ${word}` : `${clock(tick.at)} ${word}`;
  return { at: Date.parse(tick.at), until: tick.count > 1 ? Date.parse(tick.until) : undefined, kind, title };
}

function labelOf(ticks: readonly Tick[]): string {
  const sums = new Map<string, number>();
  for (const tick of ticks) {
    const { word } = TICK_MARKS[kindOf(tick)];
    sums.set(word, (sums.get(word) ?? 0) + tick.count);
  }
  const total = ticks.reduce((sum, tick) => sum + tick.count, 0);
  const parts = [...sums].map(([word, number]) => `${number} ${word}`);
  return total === 0 ? "no ticks" : `${plural(total, "tick")}: ${parts.join(", ")}`;
}
