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
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const COLOURS: Record<string, string> = {
  success: "success",
  running: "running",
  failed: "failed",
  missed: "failed",
  overlap: "warn",
};

// A square for each day, a column for each week, the months above.
export function Heatmap({ days, label, onChoose }: Props) {
  const before = days[0] === undefined ? 0 : weekdayOf(days[0].day);
  const placed = days.map((day, index) => ({ day, week: Math.floor((before + index) / 7) }));
  return (
    <section className={css.heat} aria-label={label}>
      {WEEKDAYS.map(
        (name, index) =>
          name !== "" && (
            <span key={name} className="xs d3" style={{ gridRow: index + 2, gridColumn: 1 }}>
              {name}
            </span>
          ),
      )}
      {placed
        .filter(({ day }, index) => index === 0 || day.day.endsWith("-01"))
        .filter(({ week }, index, all) => index > 0 || (all[1]?.week ?? 9) - week > 2)
        .map(({ day, week }) => (
          <span key={day.day} className={`xs d3 ${css.month}`} style={{ gridRow: 1, gridColumn: week + 2 }}>
            {MONTHS[Number(day.day.slice(5, 7)) - 1]}
          </span>
        ))}
      {placed.map(({ day, week }) => (
        <Square key={day.day} day={day} week={week} onChoose={onChoose} />
      ))}
    </section>
  );
}

function weekdayOf(day: string): number {
  return (new Date(`${day}T00:00Z`).getUTCDay() + 6) % 7;
}

interface SquareProps {
  day: Day;
  week: number;
  onChoose?: (day: string) => void;
}

function Square({ day, week, onChoose }: SquareProps) {
  const colour = day.worst === null ? null : (COLOURS[day.worst] ?? "rest");
  const isTrouble = colour === "failed" || colour === "warn";
  const strength = isTrouble ? 100 : 35 + 40 * (day.weight ?? 1);
  const style = {
    gridRow: weekdayOf(day.day) + 2,
    gridColumn: week + 2,
    ...(colour === null ? {} : { background: `color-mix(in srgb, var(--${colour}) ${strength}%, var(--panel))` }),
  };
  const content =
    colour === "failed" ? <Icon name="cross" className={css.mark} /> : isTrouble ? <b className={css.mark}>!</b> : null;
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
