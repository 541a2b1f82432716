import { duration } from "../../lib/format";
import { clockTime, partsOf, type Zone } from "../../lib/zone";
import type { Forecast, Run } from "./model";

// The axis of the timeline: from the start of the run to its end, real or expected, with room for words at the right.
export interface Scale {
  from: number;
  to: number;
  isPhone: boolean;
}

const ROOM = 1.16;
// Of the words beside less wide bars.
const ROOM_ON_PHONE = 1.6;
const LEAST_MS = 200;
const MOST_TICKS = 8;
const MOST_TICKS_ON_PHONE = 4;
const STEPS = [
  0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400,
];

export function scaleOf(run: Run, forecast: Forecast | undefined, now: number, isPhone: boolean): Scale {
  const from = Date.parse(run.startedAt ?? run.createdAt);
  const expected = forecast?.steps.map((step) => Date.parse(step.endsAt ?? "")).filter((at) => !Number.isNaN(at)) ?? [];
  const end = run.completedAt === null ? Math.max(now, ...expected) : Date.parse(run.completedAt);
  return { from, to: from + Math.max(LEAST_MS, end - from) * (isPhone ? ROOM_ON_PHONE : ROOM), isPhone };
}

// Between 0 and 1.
export function share(scale: Scale, at: number): number {
  return Math.min(1, Math.max(0, (at - scale.from) / (scale.to - scale.from)));
}

export interface Tick {
  at: number;
  label: string;
}

export function ticksOf(scale: Scale, zone: Zone): Tick[] {
  const seconds = (scale.to - scale.from) / 1000;
  const most = scale.isPhone ? MOST_TICKS_ON_PHONE : MOST_TICKS;
  const days = Math.ceil(seconds / most / 86_400) * 86_400;
  const step = STEPS.find((one) => seconds / one <= most) ?? days;
  const first = step < 1 ? scale.from : Math.ceil(scale.from / 1000 / step) * step * 1000;
  const ticks: Tick[] = [];
  for (let at = first; at < scale.to; at += step * 1000) ticks.push({ at, label: labelOf(at, step, scale, zone) });
  return ticks;
}

function labelOf(at: number, step: number, scale: Scale, zone: Zone): string {
  if (step < 1) return at === scale.from ? "0 s" : duration((at - scale.from) / 1000);
  const moment = new Date(at);
  if (step >= 86_400) return `${Number(partsOf(moment, zone).day)}.${partsOf(moment, zone).month}.`;
  return step < 60 ? `${clockTime(moment, zone)}:${partsOf(moment, zone).second}` : clockTime(moment, zone);
}
