import { useEffect, useRef, useState } from "react";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useZone } from "../hooks/useZone";
import { useSignal } from "../lib/signal";
import { theme } from "../lib/theme";
import { clockTime, longTime, zoneName } from "../lib/zone";
import css from "./Chart.module.css";

export interface Line {
  label: string;
  // One per time; null where nothing is known.
  values: readonly (number | null)[];
  // A token: success, failed, running, ink, ink-3. Bars are stacked, the first line at the bottom.
  colour: string;
  // A band is an area without a line, such as what is usual.
  kind?: "line" | "dashed" | "area" | "band" | "bars";
}

export interface ChartProps {
  // Seconds since 1970.
  times: readonly number[];
  lines: readonly Line[];
  // What it shows, as a sentence, for those who do not see it.
  sentence: string;
  // Values as text, with their unit.
  format: (value: number) => string;
  height?: number;
  // Moments at which something changed, drawn as dashed lines; in seconds.
  marks?: readonly number[];
  // Charts with the same name share one cursor.
  cursor?: string;
  // Without an axis of values: the largest value stands above the chart instead. For several charts in a row. The
  // values of the others are whole numbers.
  isSmall?: boolean;
  onCursor?: (index: number | null) => void;
}

const EDGE = 16;

export default function Chart(props: ChartProps) {
  const { times, lines, sentence, height = 96, isSmall = false } = props;
  const box = useRef<HTMLDivElement>(null);
  const { zone } = useZone();
  const chosen = useSignal(theme);
  const latest = useRef(props);
  latest.current = props;
  const [hasTable, setTable] = useState(false);
  const shape = lines.map((line) => `${line.label} ${line.colour} ${line.kind}`).join();
  const plot = useRef<UPlot | null>(null);
  const data = [times, ...plotted(lines).map((line) => line.values)] as UPlot.AlignedData;
  const held = useRef(data);
  held.current = data;

  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` and `chosen` stand for what the plot is made of.
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const made = new UPlot(optionsOf(latest, zone, element), held.current, element);
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, zone, chosen, height]);

  useEffect(() => plot.current?.setData(data));

  return (
    <figure className={`${css.figure} ${isSmall ? css.small : ""}`}>
      <div ref={box} className={css.chart} style={{ height }} role="img" aria-label={sentence} />
      <button type="button" className={css.data} aria-expanded={hasTable} onClick={() => setTable(!hasTable)}>
        Data
      </button>
      {hasTable && <DataOf {...props} zone={zone} />}
    </figure>
  );
}

function DataOf({ times, lines, sentence, format, zone }: ChartProps & { zone: "local" | "UTC" }) {
  return (
    <div className={css.table}>
      <table>
        <caption className="unseen">{sentence}</caption>
        <thead>
          <tr>
            <th scope="col">time</th>
            {lines.map((line) => (
              <th key={line.label} scope="col" className="num">
                {line.label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((time, index) => (
            <tr key={time}>
              <th scope="row" title={longTime(new Date(time * 1000), zone)}>
                {clockTime(new Date(time * 1000), zone)}
              </th>
              {lines.map((line) => {
                const value = line.values[index];
                return (
                  <td key={line.label} className="num">
                    {value === null || value === undefined ? "—" : format(value)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function optionsOf(latest: { current: ChartProps }, zone: "local" | "UTC", element: HTMLElement): UPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const colourOf = (token: string) => style.getPropertyValue(`--${token}`).trim();
  const { lines, height = 96, cursor, isSmall = false } = latest.current;
  const axis = { stroke: colourOf("ink-3"), font: "11px sans-serif", ticks: { show: false } };
  return {
    width: element.clientWidth,
    height,
    legend: { show: false },
    cursor: {
      sync: cursor === undefined ? undefined : { key: cursor },
      drag: { x: false, y: false },
      points: { size: 5 },
    },
    tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), zoneName(zone)),
    padding: isSmall ? [14, 0, 0, 0] : undefined,
    scales: { y: { range: (_plot, _least, most) => [0, isSmall ? roundUp(most) : evenUp(most)] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 20,
        space: 60,
        values: (plot, at) => at.map((s) => (isSmall && isAtEdge(plot, s) ? "" : clockTime(new Date(s * 1000), zone))),
      },
      {
        ...axis,
        grid: { stroke: colourOf("line"), width: 1 },
        size: isSmall ? 0 : 44,
        splits: (_plot, _axis, _least, most) => [0, most / 2, most],
        values: (_plot, at) => at.map((value) => (isSmall ? "" : latest.current.format(value))),
      },
    ],
    series: [{}, ...plotted(lines).map((line) => seriesOf(line, colourOf))],
    hooks: {
      draw: [
        (plot) => drawMarks(plot, latest.current.marks ?? [], colourOf("ink-3")),
        (plot) => isSmall && drawMost(plot, latest.current.format, axis.stroke),
      ],
      setCursor: [(plot) => latest.current.onCursor?.(plot.cursor.idx ?? null)],
    },
  };
}

// The highest stack is drawn first, and the others over it.
function plotted(lines: readonly Line[]): Line[] {
  const bars = lines.filter((line) => line.kind === "bars");
  const stacked = bars.map((line, index) => ({
    ...line,
    values: line.values.map((_, at) => bars.slice(0, index + 1).reduce((sum, one) => sum + (one.values[at] ?? 0), 0)),
  }));
  return [...stacked.reverse(), ...lines.filter((line) => line.kind !== "bars")];
}

function seriesOf(line: Line, colourOf: (token: string) => string): UPlot.Series {
  const colour = colourOf(line.colour);
  const isBars = line.kind === "bars";
  return {
    label: line.label,
    stroke: colour,
    width: isBars || line.kind === "band" ? 0 : 1.5,
    dash: line.kind === "dashed" ? [3, 3] : undefined,
    fill: isBars
      ? barColour(line.colour, colourOf)
      : line.kind === "band"
        ? colour
        : line.kind === "area"
          ? `${colour}26`
          : undefined,
    paths: isBars ? UPlot.paths.bars?.({ size: [0.85] }) : undefined,
    points: isBars || line.kind === "band" ? { show: false } : { show: true, size: 4, filter: alone },
  };
}

// A value between two gaps has no line to be seen by: it gets a point.
function alone(plot: UPlot, series: number, isShown: boolean): number[] | null {
  const values = plot.data[series];
  if (!isShown || values === undefined) return null;
  const is = (index: number) => values[index] !== null && values[index] !== undefined;
  return [...values.keys()].filter((index) => is(index) && !is(index - 1) && !is(index + 1));
}

// A label there would be cut off.
function isAtEdge(plot: UPlot, seconds: number): boolean {
  const x = plot.valToPos(seconds, "x");
  return x < EDGE || x > plot.over.clientWidth - EDGE;
}

// The next number that is easy to read: 1, 1.5, 2, 3, 5 or 8 times a power of ten.
function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 1.5, 2, 3, 5, 8, 10].find((step) => step * power >= value * 0.999) ?? 10) * power;
}

// The next such number whose half is whole.
function evenUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return Math.max(2, ([1, 2, 4, 6, 8, 10].find((step) => step * power >= value) ?? 10) * power);
}

function drawMost(plot: UPlot, format: (value: number) => string, colour: string): void {
  const { ctx, bbox } = plot;
  const most = plot.scales.y?.max;
  if (most === undefined) return;
  ctx.save();
  ctx.fillStyle = colour;
  ctx.font = `${10 * devicePixelRatio}px sans-serif`;
  ctx.textAlign = "right";
  ctx.textBaseline = "bottom";
  ctx.fillText(format(most), bbox.left + bbox.width, bbox.top - 2 * devicePixelRatio);
  ctx.restore();
}

// Success is quiet, also in a bar.
function barColour(token: string, colourOf: (token: string) => string): string {
  return token === "success" ? `color-mix(in srgb, ${colourOf(token)} 55%, ${colourOf("panel")})` : colourOf(token);
}

function drawMarks(plot: UPlot, marks: readonly number[], colour: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const mark of marks) {
    const x = Math.round(plot.valToPos(mark, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}
