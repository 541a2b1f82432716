import { memo, useMemo } from "react";
import { Link } from "wouter";
import type { Answer } from "../../api/types";
import { DayStrip } from "../../components/DayStrip";
import { Panel } from "../../components/Panel";
import { Empty, Loaded } from "../../components/States";
import { useApi } from "../../hooks/useApi";
import { useNow } from "../../hooks/useNow";
import { useZone } from "../../hooks/useZone";
import { count, plural } from "../../lib/format";
import { clockTime } from "../../lib/zone";
import css from "./NextHour.module.css";

type Tick = Answer<"/ticks">["items"][number];

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const QUARTER = 15 * MINUTE;
// A label so near to "now" would lie on it.
const NEAR = 6 * MINUTE;

interface Strip {
  id: string;
  name: string;
  ticks: readonly Tick[];
}

// The ticks of the next hour, by schedule; the one whose turn comes first is above. It is drawn anew once a minute.
export function NextHour({ most }: { most: number }) {
  const now = useNow();
  return <Hour most={most} from={now - (now % MINUTE)} />;
}

const Hour = memo(function Hour({ most, from }: { most: number; from: number }) {
  const range = { from: new Date(from).toISOString(), to: new Date(from + HOUR).toISOString() };
  const ticks = useApi("/ticks", { query: range }, { live: ["changes"], everyMs: 10_000 });
  const strips = useMemo(() => stripsOf(ticks.data?.items ?? []), [ticks.data]);
  const number = strips.reduce((sum, strip) => sum + strip.ticks.length, 0);
  const note = `${ticks.data?.isCapped ? `${count(number)}+ ticks` : plural(number, "tick")} of ${plural(strips.length, "schedule")}`;
  return (
    <Panel
      title="Next hour"
      note={strips.length > 0 && note}
      right={
        <Link href="/schedules" className="sm ln d2">
          Schedules
        </Link>
      }
    >
      <Loaded what="The ticks" query={ticks}>
        {() => (strips.length === 0 ? <NoTicks /> : <Strips strips={strips} most={most} from={from} />)}
      </Loaded>
    </Panel>
  );
});

function NoTicks() {
  return (
    <Empty title="No tick in the next hour">
      <span>
        Give a job <code>every="15m"</code> or <code>cron="0 4 * * *"</code>, and its ticks are shown here.
      </span>
    </Empty>
  );
}

function Strips({ strips, most, from }: { strips: readonly Strip[]; most: number; from: number }) {
  const { zone } = useZone();
  const quarters = [1, 2, 3, 4]
    .map((step) => Math.floor(from / QUARTER) * QUARTER + step * QUARTER)
    .filter((at) => at <= from + HOUR);
  const left = (at: number) => `${((at - from) / HOUR) * 100}%`;
  return (
    <div className={css.hour}>
      <div className={css.grid} aria-hidden="true">
        {quarters.map((at) => (
          <span
            key={at}
            className={`${css.quarter} ${from + HOUR - at < NEAR ? css.last : ""}`}
            style={{ left: left(at) }}
          >
            {at - from > NEAR && <span>{clockTime(new Date(at), zone)}</span>}
          </span>
        ))}
        <span className={css.now}>
          <span>now</span>
        </span>
      </div>
      {strips.slice(0, most).map((strip) => (
        <div key={strip.id} className={css.strip}>
          <Link href={`/schedules?of=${encodeURIComponent(strip.name)}`} className="el" title={strip.name}>
            {strip.name}
          </Link>
          <DayStrip
            from={from}
            to={from + HOUR}
            now={from}
            ticks={strip.ticks.map((tick) => ({
              at: Date.parse(tick.at),
              kind: "to-come",
              title: clockTime(new Date(tick.at), zone),
            }))}
            label={`${plural(strip.ticks.length, "tick")} of ${strip.name} in the next hour`}
          />
        </div>
      ))}
      <div className={css.foot}>
        {strips.length > most && (
          <Link href="/schedules" className="sm ln d2">
            {count(strips.length - most)} more
          </Link>
        )}
      </div>
    </div>
  );
}

function stripsOf(ticks: readonly Tick[]): Strip[] {
  const found = new Map<string, Tick[]>();
  for (const tick of ticks) {
    if (!tick.isPlanned) continue;
    const several = found.get(tick.scheduleId);
    if (several === undefined) found.set(tick.scheduleId, [tick]);
    else several.push(tick);
  }
  return [...found].map(([id, several]) => ({ id, name: several[0]?.schedule ?? "", ticks: several }));
}
