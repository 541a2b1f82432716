import { connection, tryNow } from "../api/live";
import { Button } from "../components/Button";
import { Icon } from "../components/Icon";
import { useNow } from "../hooks/useNow";
import { useZone } from "../hooks/useZone";
import { age } from "../lib/format";
import { useSignal } from "../lib/signal";
import { shortTime } from "../lib/zone";
import css from "./Live.module.css";

const PATIENCE_MS = 3_000;

// Never a silent stale page: says since when it is not live. A reconnect within a moment is not worth a word.
export function LiveStrip() {
  const state = useSignal(connection);
  const { zone } = useZone();
  useNow();
  if (state.kind !== "lost" || Date.now() - state.since < PATIENCE_MS) return null;
  const old = age((Date.now() - state.since) / 1000);
  const wait = Math.max(0, Math.ceil((state.retryAt - Date.now()) / 1000));
  return (
    <div className={css.strip} role="status">
      <Icon name="triangle" className="c-warn" />
      <span className="gr">
        Not live since {shortTime(new Date(state.since), zone, new Date())}. What you see is {old} old.{" "}
        {wait > 0 ? `Trying again in ${wait} s.` : "Trying again."}
      </span>
      <Button isSmall onClick={tryNow}>
        Try now
      </Button>
    </div>
  );
}
