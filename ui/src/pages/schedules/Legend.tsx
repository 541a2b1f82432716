import { TICK_MARKS, type TickKind } from "../../components/DayStrip";
import { Icon } from "../../components/Icon";
import css from "./Schedules.module.css";

const SHOWN: readonly TickKind[] = ["ran", "runs", "failed", "missed", "overlap", "to-come"];

export function Legend() {
  return (
    <span className={`${css.legend} xs d2 not-phone`}>
      {SHOWN.map((kind) => (
        <span key={kind}>
          <Icon name={TICK_MARKS[kind].icon} className={`c-${TICK_MARKS[kind].colour}`} />
          {TICK_MARKS[kind].word}
        </span>
      ))}
    </span>
  );
}
