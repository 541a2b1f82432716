import css from "./DayStrip.module.css";
import { Icon } from "./Icon";
import type { IconName } from "./sprite";

export type TickKind = "ran" | "runs" | "failed" | "missed" | "overlap" | "left-out" | "to-come";

export interface TickMark {
  // Milliseconds.
  at: number;
  // The last one, if it stands for several ticks in a row: they are drawn as a bar.
  until?: number;
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
  const share = (at: number) => Math.min(100, Math.max(0, ((at - from) / (to - from)) * 100));
  const place = (at: number) => `${share(at)}%`;
  const between = (begin: number, end: number) => ({ left: place(begin), width: `${share(end) - share(begin)}%` });
  const spans = ticks.filter(isSpan);
  const single = ticks.filter((tick) => !isSpan(tick));
  const isDense = single.length > MOST_MARKS;
  const marks = [...(isDense ? single.filter(isException) : single), ...spans.filter(isException)];
  return (
    <div className={css.strip} role="img" aria-label={label}>
      <span className={css.line} />
      {isDense && spans.length === 0 && <span className={css.done} style={{ left: 0, width: place(now) }} />}
      {isDense && spans.length === 0 && <span className={css.open} style={{ left: place(now), right: 0 }} />}
      {spans.map((tick) => (
        <span
          key={`span ${tick.at}`}
          className={tick.kind === "to-come" ? css.open : css.done}
          style={
            {
              ...between(tick.at, tick.until ?? tick.at),
              "--bar": `var(--${TICK_MARKS[tick.kind].colour})`,
            } as React.CSSProperties
          }
          title={tick.title}
        />
      ))}
      {single
        .filter((tick) => tick.kind === "runs")
        .map((tick) => (
          <span key={`runs ${tick.at}`} className={css.runs} style={between(tick.at, now)} />
        ))}
      {thinned(marks, (to - from) / MOST_MARKS / 2).map((tick) => (
        <span key={`${tick.kind} ${tick.at}`} className={css.tick} style={{ left: place(tick.at) }} title={tick.title}>
          <Icon name={TICK_MARKS[tick.kind].icon} className={`c-${TICK_MARKS[tick.kind].colour}`} />
        </span>
      ))}
      {now > from && now < to && <span className={css.now} style={{ left: place(now) }} />}
    </div>
  );
}

function isSpan(tick: TickMark): boolean {
  return tick.until !== undefined && tick.until > tick.at;
}

function isException(tick: TickMark): boolean {
  return tick.kind !== "ran" && tick.kind !== "to-come";
}

// Marks of one kind that would cover each other are drawn once.
function thinned(ticks: readonly TickMark[], least: number): TickMark[] {
  const last = new Map<TickKind, number>();
  return [...ticks]
    .sort((one, other) => one.at - other.at)
    .filter((tick) => {
      const before = last.get(tick.kind);
      if (before !== undefined && tick.at - before < least) return false;
      last.set(tick.kind, tick.at);
      return true;
    });
}
