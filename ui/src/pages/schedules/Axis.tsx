import { useZone } from "../../hooks/useZone";
import { dayWords, plusDays, type Range, startOf } from "./days";
import css from "./Schedules.module.css";

const HOURS = ["00", "03", "06", "09", "12", "15", "18", "21"];

// The head of the column of strips: hours of a day, or days of a week.
export function Axis({ range }: { range: Range }) {
  const { zone } = useZone();
  const labels =
    range.days === 1
      ? HOURS.map((hour) => ({ at: startOf(range.first, zone, `${hour}:00`), text: `${hour}:00` }))
      : Array.from({ length: range.days }, (_, index) => plusDays(range.first, index)).map((day) => ({
          at: startOf(day, zone),
          text: dayWords(day, true),
        }));
  return (
    <div className={css.axis}>
      {labels.map(({ at, text }) => (
        <span key={text} style={{ left: `${((at - range.from) / (range.to - range.from)) * 100}%` }}>
          {text}
        </span>
      ))}
    </div>
  );
}
