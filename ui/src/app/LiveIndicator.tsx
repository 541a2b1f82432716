import { connection, held, missed, toggleHold } from "../api/live";
import { useNow } from "../hooks/useNow";
import { age, count } from "../lib/format";
import { useSignal } from "../lib/signal";
import css from "./Live.module.css";

// Live, how old the page is, or held by the reader.
export function LiveIndicator() {
  const state = useSignal(connection);
  const isHeld = useSignal(held);
  const waiting = useSignal(missed);
  useNow();
  if (isHeld) {
    const more = waiting > 0 ? ` · ${count(waiting)} new` : "";
    return (
      <button type="button" className={css.live} onClick={toggleHold} title="Held: press . to continue">
        <i style={{ background: "var(--rest)" }} />
        Held{more}
      </button>
    );
  }
  const isLost = state.kind === "lost";
  return (
    <button
      type="button"
      className={css.live}
      onClick={toggleHold}
      title="Updates arrive as they happen. Press . to hold"
    >
      <i
        style={{ background: isLost ? "var(--retrying)" : state.kind === "live" ? "var(--success)" : "var(--rest)" }}
      />
      {isLost ? `${age((Date.now() - state.since) / 1000)} old` : "Live"}
    </button>
  );
}
