import type { Answer } from "../../api/types";
import type { Line } from "../../components/LazyChart";
import { count, duration, percent, shortCount } from "../../lib/format";
import { perMinute } from "./words";

// As far back as the numbers of the overview go.
const LATELY_S = 15 * 60;

type Numbers = Answer<"/overview">["numbers"];
type Stats = Answer<"/stats">;
type Values = readonly (number | null)[];

export interface Cell {
  title: string;
  value: string;
  note: string;
  times: readonly number[];
  lines: readonly Line[];
  // The line whose value stands in the head, and its shape on a phone.
  main: Line;
  legend: readonly Line[];
  sentence: string;
  format: (value: number) => string;
}

// The four charts, from left to right: traffic, errors, latency, saturation.
export function cellsOf(stats: Stats, numbers: Numbers): Cell[] {
  const times = (stats.series[0]?.points ?? []).map(([at]) => Date.parse(String(at)) / 1000);
  const of = (metric: string) => valuesOf(stats, metric);
  return [
    ended(stats, times, of("success"), of("failed"), numbers),
    failed(stats, times, of("success"), of("failed"), numbers),
    waited(stats, times, of("startLatency.p50"), of("startLatency.p95"), of("startLatency.p99")),
    busy(times, of("busy"), of("slots"), numbers),
  ];
}

function ended(stats: Stats, times: readonly number[], success: Values, bad: Values, numbers: Numbers): Cell {
  const minutes = stats.step / 60;
  const each = (values: Values) => values.map((value) => (value === null ? null : value / minutes));
  const succeeded: Line = { label: "success", values: each(success), colour: "success", kind: "bars" };
  const broken: Line = { label: "failed", values: each(bad), colour: "failed", kind: "bars" };
  const now = numbers.endedPerMinute ?? 0;
  const usual = numbers.usualEndedPerMinute;
  return {
    title: "Ended per minute",
    value: perMinute(now),
    note: usual === null ? "in the last 15 minutes" : `usually ${perMinute(usual)}`,
    times,
    lines: [succeeded, broken],
    main: { ...succeeded, label: "ended", colour: "ink-2", values: sums(each(success), each(bad)) },
    legend: [succeeded, broken],
    sentence: `Executions that ended per minute: ${perMinute(now)} now.`,
    format: (value) => (value >= 10_000 ? shortCount(value) : perMinute(value)),
  };
}

function failed(stats: Stats, times: readonly number[], success: Values, bad: Values, numbers: Numbers): Cell {
  const share: Line = { label: "failed", values: shares(success, bad), colour: "failed" };
  const usually = shares(usualOf(stats, "success"), usualOf(stats, "failed"));
  const band: Line = { label: "usual", values: usually, colour: "fill-2", kind: "band" };
  const hasUsual = usually.some((value) => value !== null);
  const now = numbers.successRate === null ? "—" : percent(1 - numbers.successRate);
  const usual = numbers.usualSuccessRate;
  return {
    title: "Failed",
    value: now,
    note: usual === null ? "of what ended" : `usually ${percent(1 - usual)}`,
    times,
    lines: hasUsual ? [band, share] : [share],
    main: share,
    legend: hasUsual ? [band] : [],
    sentence: `Share of executions that failed for good: ${now} in the last 15 minutes.`,
    format: percent,
  };
}

function waited(stats: Stats, times: readonly number[], p50: Values, p95: Values, p99: Values): Cell {
  const main: Line = { label: "95", values: p95, colour: "ink" };
  const lines: Line[] = [
    { label: "50", values: p50, colour: "rest" },
    main,
    { label: "99", values: p99, colour: "ink-3", kind: "dashed" },
  ];
  // An older value says nothing about now.
  const lately = p95.slice(-Math.max(1, Math.ceil(LATELY_S / stats.step)));
  const last = lately.findLast((value) => value !== null) ?? null;
  const now = last === null ? "—" : duration(last);
  return {
    title: "Wait before start",
    value: now,
    note: last === null ? "nothing has started lately" : "95th percentile, about",
    times,
    lines,
    main,
    legend: lines,
    sentence:
      last === null
        ? "Time between due and start: nothing has started lately."
        : `Time between due and start: 95 of 100 executions waited about ${now} or less.`,
    format: duration,
  };
}

function busy(times: readonly number[], taken: Values, slots: Values, numbers: Numbers): Cell {
  const main: Line = { label: "busy", values: taken, colour: "running", kind: "area" };
  const lines: Line[] = [main, { label: "total", values: slots, colour: "ink" }];
  const share = numbers.slots === 0 ? null : numbers.busy / numbers.slots;
  return {
    title: "Slots busy",
    value: `${count(numbers.busy)} of ${count(numbers.slots)}`,
    note: share === null ? "no worker is at work" : `${Math.round(share * 100)} %`,
    times,
    lines,
    main,
    legend: lines,
    sentence: `Slots of the live workers: ${numbers.busy} of ${numbers.slots} are busy.`,
    format: (value) => count(Math.round(value)),
  };
}

function valuesOf(stats: Stats, metric: string): Values {
  return (stats.series.find((one) => one.metric === metric)?.points ?? []).map(([, value]) => numberOf(value));
}

function usualOf(stats: Stats, metric: string): Values {
  return (stats.series.find((one) => one.metric === metric)?.usual ?? []).map(numberOf);
}

// The document describes a point as a pair of any values.
function numberOf(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function sums(first: Values, second: Values): Values {
  return first.map((value, at) => (value ?? 0) + (second[at] ?? 0));
}

function shares(success: Values, bad: Values): Values {
  return success.map((value, at) => {
    const lost = bad[at] ?? null;
    if (value === null || lost === null || value + lost === 0) return null;
    return lost / (value + lost);
  });
}
