import type { Answer } from "../../api/types";
import { Time } from "../../components/Time";
import { useNow } from "../../hooks/useNow";
import { useZone } from "../../hooks/useZone";
import { count, plural } from "../../lib/format";
import { type Range, rangeWords } from "./days";
import { hasStarted, type Schedule } from "./words";

interface Props {
  schedules: readonly Schedule[];
  ticks: Answer<"/ticks"> | undefined;
  range: Range;
}

// "24 schedules, 2 paused · 131 ticks today, 128 started · next: expire_carts at 03:15:00"
export function Support({ schedules, ticks, range }: Props) {
  const now = useNow();
  const { zone } = useZone();
  const paused = schedules.filter((schedule) => schedule.paused !== null).length;
  const past = (ticks?.items ?? []).filter((tick) => !tick.isPlanned);
  const total = past.reduce((sum, tick) => sum + tick.count, 0);
  const started = past.filter((tick) => hasStarted(tick.outcome)).reduce((sum, tick) => sum + tick.count, 0);
  const next = schedules
    .filter((schedule) => schedule.nextAt !== null)
    .sort((one, other) => (one.nextAt ?? "").localeCompare(other.nextAt ?? ""))[0];
  return (
    <>
      {plural(schedules.length, "schedule")}, {paused === 0 ? "none" : paused} paused
      {ticks !== undefined && ` · ${plural(total, "tick")} ${rangeWords(range, now, zone)}, ${count(started)} started`}
      {next !== undefined && (
        <>
          {" "}
          · next: {next.name} at <Time at={next.nextAt} />
        </>
      )}
    </>
  );
}
