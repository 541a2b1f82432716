import css from "./Heatmap.module.css";
import { Icon } from "./Icon";

export interface Day {
  // 2026-11-17
  day: string;
  // The worst outcome of the day: success, failed, missed, overlap, running, or null for nothing.
  worst: string | null;
  // Between 0 and 1: how full the colour is.
  weight?: number;
  title: string;
}

interface Props {
  // In order, without gaps.
  days: readonly Day[];
  // The sum in words, which stands below.
  label: string;
  onChoose?: (day: string) => void;
}

const WEEKDAYS = ["Mon", "", "Wed", "", "Fri", "", "Sun"];
const COLOURS: Record<string, string> = {
  success: "success",
  running: "running",
  failed: "failed",
  missed: "failed",
  overlap: "warn",
};

// A square for each day, a column for each week.
export function Heatmap({ days, label, onChoose }: Props) {
  const before = days[0] === undefined ? 0 : (new Date(`${days[0].day}T00:00Z`).getUTCDay() + 6) % 7;
  return (
    <section className={css.heat} aria-label={label}>
      {WEEKDAYS.map((name, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the days of a week keep their places.
        <span key={index} className="xs d3">
          {name}
        </span>
      ))}
      {Array.from({ length: before }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: squares without a day have no other name.
        <span key={`before ${index}`} />
      ))}
      {days.map((day) => (
        <Square key={day.day} day={day} onChoose={onChoose} />
      ))}
    </section>
  );
}

function Square({ day, onChoose }: { day: Day; onChoose?: (day: string) => void }) {
  const colour = day.worst === null ? null : (COLOURS[day.worst] ?? "rest");
  const isTrouble = colour === "failed" || colour === "warn";
  const strength = isTrouble ? 100 : 35 + 40 * (day.weight ?? 1);
  const style =
    colour === null ? undefined : { background: `color-mix(in srgb, var(--${colour}) ${strength}%, var(--panel))` };
  const content = isTrouble ? <Icon name={colour === "failed" ? "cross" : "dash"} className={css.mark} /> : null;
  if (onChoose === undefined)
    return (
      <span className={css.day} style={style} title={day.title}>
        {content}
      </span>
    );
  return (
    <button
      type="button"
      className={css.day}
      style={style}
      title={day.title}
      aria-label={day.title}
      onClick={() => onChoose(day.day)}
    >
      {content}
    </button>
  );
}
