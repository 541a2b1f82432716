import { useNow } from "../hooks/useNow";
import { useZone } from "../hooks/useZone";
import { age, duration, secondsBetween } from "../lib/format";
import { longTime, shortTime } from "../lib/zone";
import { Hint } from "./Hint";

// A moment in the zone of the page. Hover and focus: date, zone, UTC and how long ago.
export function Time({ at }: { at: string | null | undefined }) {
  const { zone } = useZone();
  const now = useNow();
  if (at === null || at === undefined) return <span className="d3">—</span>;
  const moment = new Date(at);
  const seconds = (now - moment.getTime()) / 1000;
  const distance = seconds < 0 ? `in ${age(-seconds)}` : `${age(seconds)} ago`;
  return (
    <Hint text={`${longTime(moment, zone)}\n${moment.toISOString()}\n${distance}`}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what hover shows has to be there for the keyboard as well. */}
      <time className="tab nw" dateTime={at} tabIndex={0}>
        {shortTime(moment, zone, new Date(now))}
      </time>
    </Hint>
  );
}

// How long ago, or how long until: "26 m".
export function Age({ since, until }: { since?: string | null; until?: string | null }) {
  const now = useNow();
  const at = since ?? until;
  if (at === null || at === undefined) return <span className="d3">—</span>;
  const seconds = Math.abs(now - Date.parse(at)) / 1000;
  return <span className="tab nw">{age(seconds)}</span>;
}

interface DurationProps {
  seconds?: number | null;
  // Between two moments instead; without `to` up to now.
  from?: string | null;
  to?: string | null;
}

export function Duration({ seconds, from, to }: DurationProps) {
  const now = useNow();
  const length = seconds ?? (from ? secondsBetween(from, to ?? now) : null);
  return <span className="tab nw">{length === null ? "—" : duration(length)}</span>;
}
