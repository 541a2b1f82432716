import css from "./DayStrip.module.css";
import { Icon } from "./Icon";
import type { IconName } from "./sprite";

export type TickKind = "ran" | "runs" | "failed" | "missed" | "overlap" | "left-out" | "to-come";

export interface TickMark {
  // Milliseconds.
  at: number;
  kind: TickKind;
  title: string;
}

interface Props {
  from: number;
  to: number;
  now: number;
  ticks: readonly TickMark[];
  // In words: "96 ticks today, 3 did not run".
  label: string;
}

export const TICK_MARKS: Record<TickKind, { icon: IconName; colour: string; word: string }> = {
  ran: { icon: "disc", colour: "success", word: "ran" },
  runs: { icon: "disc-play", colour: "running", word: "runs" },
  failed: { icon: "octagon", colour: "failed", word: "failed" },
  missed: { icon: "cross", colour: "failed", word: "missed" },
  overlap: { icon: "diamond", colour: "warn", word: "overlap" },
  "left-out": { icon: "dash", colour: "rest", word: "excluded or paused" },
  "to-come": { icon: "ring", colour: "rest", word: "to come" },
};
// More ticks than this in a day leave less than 8 px for each: a bar is drawn, and only exceptions are marked.
const MOST_MARKS = 80;

// The ticks of a schedule between two moments.
export function DayStrip({ from, to, now, ticks, label }: Props) {
  const place = (at: number) => `${Math.min(100, Math.max(0, ((at - from) / (to - from)) * 100))}%`;
  const isDense = ticks.length > MOST_MARKS;
  const shown = isDense ? ticks.filter((tick) => tick.kind !== "ran" && tick.kind !== "to-come") : ticks;
  return (
    <div className={css.strip} role="img" aria-label={label}>
      <span className={css.line} />
      {isDense && <span className={css.done} style={{ left: 0, width: place(now) }} />}
      {isDense && <span className={css.open} style={{ left: place(now), right: 0 }} />}
      {shown.map((tick) => (
        <span key={tick.at} className={css.tick} style={{ left: place(tick.at) }} title={tick.title}>
          <Icon name={TICK_MARKS[tick.kind].icon} className={`c-${TICK_MARKS[tick.kind].colour}`} />
        </span>
      ))}
      {now > from && now < to && <span className={css.now} style={{ left: place(now) }} />}
    </div>
  );
}
