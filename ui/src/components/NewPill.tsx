import { count } from "../lib/format";
import css from "./NewPill.module.css";

// New rows wait behind this, so that nothing moves under the cursor. Give it to DataTable as `before`.
export function NewPill({
  number,
  isCapped = false,
  onShow,
}: {
  number: number;
  isCapped?: boolean;
  onShow: () => void;
}) {
  return (
    <button type="button" className={css.pill} onClick={onShow}>
      <b>
        {count(number)}
        {isCapped ? "+" : ""} new
      </b>
      : <span className="ln">show them</span>
    </button>
  );
}
