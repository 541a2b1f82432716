import { plural } from "../../lib/format";
import { lateBeats, type Worker } from "./words";

const MOST = 40;
const STEP = 3;
const HEIGHT = 14;

// The last heartbeats, oldest first: a full bar came in time, a short one late. Missing ones of a lost worker are dots.
export function Heartbeats({ worker }: { worker: Worker }) {
  const beats = [...worker.heartbeats].slice(-MOST);
  const late = lateBeats(worker);
  const label = `${plural(beats.length, "heartbeat")}, ${late === 0 ? "all in time" : `${late} late`}`;
  return (
    <svg width={MOST * STEP} height={HEIGHT} role="img" aria-label={label} style={{ verticalAlign: "middle" }}>
      {beats.map((beat, index) => {
        const isLate = beat !== "0";
        const tall = isLate ? Math.max(3, HEIGHT - 3 * Number(beat)) : HEIGHT;
        return (
          <rect
            // biome-ignore lint/suspicious/noArrayIndexKey: a heartbeat has no name but its place.
            key={index}
            x={index * STEP}
            y={HEIGHT - tall}
            width={STEP - 1}
            height={tall}
            fill={isLate ? "var(--warn)" : "var(--success)"}
            opacity={isLate ? 1 : 0.75}
          />
        );
      })}
    </svg>
  );
}
