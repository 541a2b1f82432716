import { type PointerEvent, useRef, useState } from "react";
import type { Answer } from "../../api/types";
import { useApi } from "../../hooks/useApi";
import type { TimeRange } from "../../hooks/useTimeRange";
import { useZone } from "../../hooks/useZone";
import { count } from "../../lib/format";
import { clockTime, shortTime } from "../../lib/zone";
import type { ExecutionFilter } from "./filter";
import css from "./Histogram.module.css";

type Data = Answer<"/histogram">;

// From the bottom up: what needs no attention first.
const LAYERS = [
  { name: "success", colour: "success", opacity: 0.5 },
  { name: "skipped", colour: "rest", opacity: 0.5 },
  { name: "cancelled", colour: "rest", opacity: 0.7 },
  { name: "scheduled", colour: "rest", opacity: 0.35 },
  { name: "waiting", colour: "rest", opacity: 0.45 },
  { name: "queued", colour: "rest", opacity: 0.6 },
  { name: "running", colour: "running", opacity: 0.8 },
  { name: "retries", colour: "retrying", opacity: 1 },
  { name: "retrying", colour: "retrying", opacity: 1 },
  { name: "failed", colour: "failed", opacity: 1 },
] as const;
const TALL = 36;
const WIDE = 1200;

// Executions over time by state. Dragging narrows the time; so does a click on a bar.
export function Histogram({ filter, range }: { filter: ExecutionFilter; range: TimeRange }) {
  const since = range.since === "all" ? "24h" : range.since;
  const query = { ...filter, from: since, ...(range.until === null ? {} : { to: range.until }) };
  const found = useApi("/histogram", { query }, { live: ["pulse"], everyMs: 5000 });
  return found.data === undefined ? <div className={css.panel} /> : <Bars data={found.data} range={range} />;
}

function Bars({ data, range }: { data: Data; range: TimeRange }) {
  const { zone } = useZone();
  const box = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const from = Date.parse(data.from);
  const length = Math.max(1, Date.parse(data.to) - from);
  const shareAt = (event: PointerEvent) => {
    const bounds = box.current?.getBoundingClientRect();
    if (bounds === undefined) return 0;
    return Math.min(1, Math.max(0, (event.clientX - bounds.left) / bounds.width));
  };
  const end = () => {
    if (drag === null) return;
    setDrag(null);
    const step = data.step * 1000;
    const [low, high] = [Math.min(...drag), Math.max(...drag)];
    const begin = from + Math.floor((low * length) / step) * step;
    const stop = Math.max(begin + step, from + Math.ceil((high * length) / step) * step);
    range.set(new Date(begin).toISOString(), new Date(Math.min(stop, from + length)).toISOString());
  };
  const total = data.bars.reduce((sum, bar) => sum + sumOf(bar.states), 0);
  const words = `${count(total)}${data.isCapped ? "+" : ""} ${data.of} between ${shortTime(new Date(from), zone, new Date(from + length))} and ${shortTime(new Date(from + length), zone, new Date(from + length))}`;
  return (
    <div className={css.panel}>
      <div
        ref={box}
        className={css.bars}
        role="img"
        aria-label={words}
        title={`${words}. Drag to narrow the time.`}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag([shareAt(event), shareAt(event)]);
        }}
        onPointerMove={(event) => setDrag(drag === null ? null : [drag[0], shareAt(event)])}
        onPointerUp={end}
        onPointerCancel={() => setDrag(null)}
      >
        <Stacks data={data} />
        {drag !== null && (
          <i
            className={css.brush}
            style={{ left: `${Math.min(...drag) * 100}%`, width: `${Math.abs(drag[1] - drag[0]) * 100}%` }}
          />
        )}
      </div>
      <div className={`xs d3 ${css.axis}`} aria-hidden="true">
        {ticksOf(from, length).map((at) => (
          <span key={at} style={{ left: `${((at - from) / length) * 100}%` }}>
            {length > 86_400_000
              ? shortTime(new Date(at), zone, new Date(from + length))
              : clockTime(new Date(at), zone)}
          </span>
        ))}
        <em>
          {data.of} per {stepWords(data.step)}
        </em>
      </div>
    </div>
  );
}

function Stacks({ data }: { data: Data }) {
  const most = Math.max(1, ...data.bars.map((bar) => sumOf(bar.states)));
  const step = WIDE / Math.max(1, data.bars.length);
  return (
    <svg width="100%" height={TALL} viewBox={`0 0 ${WIDE} ${TALL}`} preserveAspectRatio="none" aria-hidden="true">
      {data.bars.map((bar, index) => {
        let below = 0;
        return LAYERS.map(({ name, colour, opacity }) => {
          const value = bar.states[name] ?? 0;
          if (value === 0) return null;
          // One pixel at least, so that a single failure among thousands is seen.
          const tall = Math.max(1, (value / most) * (TALL - 2));
          below += tall;
          return (
            <rect
              key={`${bar.at} ${name}`}
              x={index * step}
              y={TALL - below}
              width={Math.max(0.8, step - 1.5)}
              height={tall}
              fill={`var(--${colour})`}
              opacity={opacity}
            />
          );
        });
      })}
    </svg>
  );
}

function sumOf(states: Record<string, number>): number {
  return Object.values(states).reduce((sum, value) => sum + value, 0);
}

const ROUND_S = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800, 604_800];

// Round moments, about four of them.
function ticksOf(from: number, length: number): number[] {
  const step = (ROUND_S.find((seconds) => length / 1000 / seconds <= 5) ?? 604_800) * 1000;
  const first = Math.ceil(from / step) * step;
  const ticks = [];
  for (let at = first; at < from + length * 0.8; at += step) ticks.push(at);
  return ticks;
}

function stepWords(seconds: number): string {
  if (seconds % 86_400 === 0) return seconds === 86_400 ? "day" : `${seconds / 86_400} days`;
  if (seconds % 3600 === 0) return seconds === 3600 ? "hour" : `${seconds / 3600} hours`;
  if (seconds % 60 === 0) return seconds === 60 ? "minute" : `${seconds / 60} minutes`;
  return `${seconds} s`;
}
