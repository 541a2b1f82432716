import { useLocation } from "wouter";
import type { JobVersion } from "../../api/schema";
import { useIsPhone } from "../../hooks/useMedia";
import { useNow } from "../../hooks/useNow";
import { useZone } from "../../hooks/useZone";
import { duration, plural } from "../../lib/format";
import { hasEnded, markOf } from "../../lib/states";
import { shortTime, type Zone } from "../../lib/zone";
import { quantile } from "../jobs/words";
import css from "./Job.module.css";
import { type RunOfJob, tookOf } from "./useRuns";

const WIDE = 760;
// The letters keep their size, so a phone has a narrower picture, not a smaller one.
const WIDE_ON_PHONE = 340;
const TALL = 172;
const LEAST_MS = 1000;
// In seconds.
const STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200,
  21600, 43200,
];
const NEAR = 15;

interface Props {
  runs: readonly RunOfJob[];
  versions: readonly JobVersion[];
}

interface Point {
  run: RunOfJob;
  at: number;
  took: number;
}

// A mark for each run, a band that holds nine of ten around it, and a line where a version came.
export function RunTimes({ runs, versions }: Props) {
  const now = useNow();
  const { zone } = useZone();
  const [, go] = useLocation();
  const wide = useIsPhone() ? WIDE_ON_PHONE : WIDE;
  const box = { left: 46, right: wide - 8, top: 14, bottom: 146 };
  const points = runs
    .flatMap((run) => {
      const took = tookOf(run, now);
      return took === null || run.startedAt === null ? [] : [{ run, took, at: Date.parse(run.startedAt) }];
    })
    .sort((a, b) => a.at - b.at);
  if (points.length === 0) return <p className="d3 sm">No run has started in this time.</p>;
  const first = points[0]?.at ?? now;
  const last = points.at(-1)?.at ?? now;
  // One run alone, or many at once, stand in the middle.
  const room = Math.max(0, LEAST_MS - (last - first)) / 2;
  const [from, to] = [first - room, last + room];
  const most = niceTop(Math.max(...points.map((point) => point.took)));
  const x = (at: number) => box.left + 8 + ((at - from) / (to - from)) * (box.right - box.left - 24);
  const y = (took: number) => box.bottom - (took / most) * (box.bottom - box.top);
  const band = bandOf(points);
  const shownVersions = versions.filter((one) => Date.parse(one.createdAt) >= from && Date.parse(one.createdAt) <= to);
  const outline = [
    ...band.map((one) => `${x(one.at)},${y(one.high)}`),
    ...[...band].reverse().map((one) => `${x(one.at)},${y(one.low)}`),
  ].join(" ");
  return (
    <svg viewBox={`0 0 ${wide} ${TALL}`} className={css.chart} role="img" aria-label={sentenceOf(points)}>
      {[0, 0.25, 0.5, 0.75, 1].map((part) => (
        <g key={part}>
          <line x1={box.left} x2={box.right} y1={y(most * part)} y2={y(most * part)} stroke="var(--line)" />
          <text x={box.left - 6} y={y(most * part) + 3} textAnchor="end" className={css.axis}>
            {part === 0 ? "0" : duration(most * part)}
          </text>
        </g>
      ))}
      {band.length > 1 && <polygon points={outline} fill="var(--fill-2)" />}
      {shownVersions.map((one) => (
        <g key={one.version}>
          <line
            x1={x(Date.parse(one.createdAt))}
            x2={x(Date.parse(one.createdAt))}
            y1={10}
            y2={box.bottom}
            className={css.version}
          />
          <text x={x(Date.parse(one.createdAt)) + 4} y={16} className={css.word}>
            version {one.version}
          </text>
        </g>
      ))}
      {points.map((point) => (
        // biome-ignore lint/a11y/noStaticElementInteractions: the table below leads to the same runs by keyboard.
        <g key={point.run.executionId} className={css.mark} onClick={() => go(`/executions/${point.run.executionId}`)}>
          <title>{titleOf(point, zone, now)}</title>
          <Mark point={point} x={x(point.at)} y={y(point.took)} floor={box.bottom} />
        </g>
      ))}
      {momentsOf(from, to, zone, now).map(({ part, words }) => (
        <text
          key={part}
          x={x(from + (to - from) * part)}
          y={164}
          textAnchor={part === 0 ? "start" : part === 1 ? "end" : "middle"}
          className={css.axis}
        >
          {words}
        </text>
      ))}
    </svg>
  );
}

function Mark({ point, x, y, floor }: { point: Point; x: number; y: number; floor: number }) {
  const { status } = point.run;
  const fill = `var(--${markOf(status).colour})`;
  if (status === "failed") return <path d={`M${x - 2} ${y - 5}h4l3 3v4l-3 3h-4l-3-3v-4z`} fill={fill} />;
  if (!hasEnded(status))
    return (
      <>
        <line x1={x} x2={x} y1={floor} y2={y} stroke={fill} strokeWidth={2} />
        <circle cx={x} cy={y} r={5.5} fill={fill} />
        <path d={`M${x - 1.5} ${y - 2.6}v5.2l4.2-2.6z`} fill="var(--panel)" />
        <text x={x - 10} y={y + 4} textAnchor="end" className={css.word}>
          {duration(point.took)} and running
        </text>
      </>
    );
  return <circle cx={x} cy={y} r={3} fill={fill} opacity={0.8} />;
}

// Around each success, of its neighbours: the times that nine of ten lie between.
function bandOf(points: readonly Point[]): { at: number; low: number; high: number }[] {
  const good = points.filter((point) => point.run.status === "success");
  return good.map((point, index) => {
    const near = good.slice(Math.max(0, index - NEAR), index + NEAR + 1).map((one) => one.took);
    return { at: point.at, low: quantile(near, 0.05) ?? 0, high: quantile(near, 0.95) ?? 0 };
  });
}

// The top of an axis with four steps, each of which is a round number.
function niceTop(most: number): number {
  const days = Math.ceil(most / 4 / 86_400) * 86_400;
  return 4 * (STEPS.find((step) => 4 * step >= most) ?? days);
}

// Start, middle and end; without those that would read as the one before.
function momentsOf(from: number, to: number, zone: Zone, now: number): { part: number; words: string }[] {
  const all = [0, 0.5, 1].map((part) => ({
    part,
    words: shortTime(new Date(from + (to - from) * part), zone, new Date(now)),
  }));
  return all.filter(({ words }, index) => words !== all[index - 1]?.words);
}

function titleOf({ run, took, at }: Point, zone: Zone, now: number): string {
  return `${markOf(run.status).word}, ${duration(took)}, ${shortTime(new Date(at), zone, new Date(now))}, version ${run.version}`;
}

function sentenceOf(points: readonly Point[]): string {
  const failed = points.filter((point) => point.run.status === "failed").length;
  const middle = quantile(
    points.map((point) => point.took),
    0.5,
  );
  return `Run times of ${plural(points.length, "run")}: ${duration(middle ?? 0)} in the median, ${failed} failed`;
}
