import { useZone } from "../hooks/useZone";
import css from "./Live.module.css";

export function ZoneSwitch() {
  const { zone, label, toggle } = useZone();
  const other = zone === "local" ? "UTC" : "local time";
  return (
    <button
      type="button"
      className={css.live}
      onClick={toggle}
      title={`All times are in ${label}. Press t for ${other}`}
    >
      {label}
    </button>
  );
}
