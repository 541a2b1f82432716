import { useMe } from "../api/session";
import { duration, plural } from "../lib/format";

const DAY_S = 86_400;

// Why an id may be unknown: "It may have left the history (30 days)."
export function LeftHistory() {
  const { data: me } = useMe();
  if (me?.retention === null) return <span>It may be of another namespace.</span>;
  return <span>It may have left the history{me === undefined ? "" : ` (${lengthOf(me.retention)})`}.</span>;
}

function lengthOf(seconds: number): string {
  return seconds % DAY_S === 0 ? plural(seconds / DAY_S, "day") : duration(seconds);
}
