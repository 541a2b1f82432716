import { useRef } from "react";
import { Button } from "../../components/Button";
import { Panel } from "../../components/Panel";
import { useVisibleRows } from "../../components/visibleRows";
import { useIsPhone } from "../../hooks/useMedia";
import { useNow } from "../../hooks/useNow";
import { useUrlState } from "../../hooks/useUrlState";
import { useZone } from "../../hooks/useZone";
import { count } from "../../lib/format";
import { hasEnded } from "../../lib/states";
import type { Forecast, Run, Step } from "./model";
import { type Scale, scaleOf, share, ticksOf } from "./scale";
import css from "./Timeline.module.css";
import { type TimedRow, TimelineRow } from "./TimelineRow";
import { type MapItem, useItems } from "./useItems";
import { statusOf, titleOf } from "./words";

const ROW = 26;
const FEW_ITEMS = 3;
// A label this near to the left edge begins there, because half of it would be cut off.
const EDGE = 0.03;

interface Props {
  run: Run;
  steps: readonly Step[];
  forecast: Forecast | undefined;
  critical: readonly string[];
  selected: Step | null;
  onSelect: (step: string, item: number | null) => void;
}

// One line for each step, in the order of the graph; of the chosen map its items as well.
export function Timeline({ run, steps, forecast, critical, selected, onSelect }: Props) {
  const now = useNow();
  const url = useUrlState();
  const body = useRef<HTMLOListElement>(null);
  const map = selected?.map == null ? null : selected;
  const { items } = useItems(run, map);
  const isAll = url.one("items") === "all";
  const chosen = url.one("item");
  const shown = isAll ? items : interesting(items, chosen);
  const rows = steps.flatMap((step) => [
    rowOf(step, forecast, critical),
    ...(step === map ? shown.map((item) => itemRow(step, item)) : []),
  ]);
  const { first, last, above, below } = useVisibleRows(body, rows.length, ROW);
  const scale = scaleOf(run, forecast, now, useIsPhone());
  const keyOf = (row: TimedRow) => {
    const [step = "", item = null] = row.key.split("\n");
    onSelect(step, item === null ? null : Number(item));
  };
  const on = selected === null ? null : chosen === null ? selected.step : `${selected.step}\n${chosen}`;
  return (
    <Panel
      title="Timeline"
      note={<Legend hasForecast={forecast?.steps.some((step) => step.endsAt !== null) ?? false} />}
      right={
        map !== null &&
        items.length > 0 && (
          <>
            <span className="sm d3 not-phone">
              {map.step}: {count(shown.length)} of {count(map.map?.width ?? 0)} shown
            </span>
            <Button isSmall onClick={() => url.set({ items: isAll ? null : "all" }, { replace: true })}>
              {isAll ? "Fold" : "Expand"}
            </Button>
          </>
        )
      }
      isFlush
    >
      <div className={css.timeline}>
        <Axis scale={scale} now={run.completedAt === null ? now : null} />
        <ol ref={body} className={css.rows}>
          {above > 0 && <li style={{ height: above }} />}
          {rows.slice(first, last).map((row) => (
            <TimelineRow
              key={row.key}
              row={row}
              scale={scale}
              now={now}
              isOn={row.key === on}
              onChoose={() => keyOf(row)}
            />
          ))}
          {below > 0 && <li style={{ height: below }} />}
        </ol>
      </div>
    </Panel>
  );
}

function Axis({ scale, now }: { scale: Scale; now: number | null }) {
  const { zone } = useZone();
  const x = (at: number) => `${share(scale, at) * 100}%`;
  return (
    <svg className={css.axis} aria-hidden="true">
      {ticksOf(scale, zone).map((tick) => (
        <g key={tick.at}>
          <line x1={x(tick.at)} x2={x(tick.at)} y1={24} y2="100%" stroke="var(--line)" />
          {hasRoom(scale, tick.at, now) && (
            <text
              x={x(tick.at)}
              y={16}
              className={css.tick}
              textAnchor={share(scale, tick.at) < (scale.isPhone ? 3 : 1) * EDGE ? "start" : "middle"}
            >
              {tick.label}
            </text>
          )}
        </g>
      ))}
      {now !== null && (
        <>
          <line x1={x(now)} x2={x(now)} y1={8} y2="100%" stroke="var(--ink)" />
          <svg x={x(now)} y={4} overflow="visible" aria-hidden="true">
            <rect x={-15} y={0} width={30} height={16} rx={3} fill="var(--ink)" />
            <text x={0} y={12} textAnchor="middle" className={css.now}>
              now
            </text>
          </svg>
        </>
      )}
    </svg>
  );
}

// Not at the right edge, nor under the word "now".
function hasRoom(scale: Scale, at: number, now: number | null): boolean {
  const place = share(scale, at);
  return (
    place < (scale.isPhone ? 0.85 : 0.95) &&
    (now === null || Math.abs(place - share(scale, now)) > (scale.isPhone ? 0.16 : 0.07))
  );
}

function Legend({ hasForecast }: { hasForecast: boolean }) {
  return (
    <span className={`${css.legend} xs`}>
      <span>
        <svg width="16" height="8" aria-hidden="true">
          <path d="M0 6h16" stroke="var(--ink)" strokeWidth="2" />
        </svg>
        critical path
      </span>
      {hasForecast && (
        <span className="not-phone">
          <svg width="16" height="10" aria-hidden="true">
            <rect x=".5" y="1.5" width="15" height="7" rx="1" className={css.expected} />
          </svg>
          expected from earlier runs
        </span>
      )}
      <span className="not-phone">
        <svg width="16" height="8" aria-hidden="true">
          <path d="M0 4h16" className={css.retry} />
        </svg>
        waits to retry
      </span>
    </span>
  );
}

// Items that failed, run, or were tried again; and the chosen one.
function interesting(items: readonly MapItem[], chosen: string | null): MapItem[] {
  const worth = items.filter((item) => item.status === "failed" || item.attemptCount > 1 || !hasEnded(item.status));
  const few = worth.slice(0, FEW_ITEMS);
  const asked = items.find((item) => String(item.index) === chosen);
  return asked === undefined || few.includes(asked) ? few : [...few, asked];
}

function rowOf(step: Step, forecast: Forecast | undefined, critical: readonly string[]): TimedRow {
  const ahead = forecast?.steps.find((one) => one.step === step.step);
  const isSingle = step.map === null && step.job !== null && !step.isKept;
  return {
    key: step.step,
    label: titleOf(step),
    isItem: false,
    status: statusOf(step),
    executionId: isSingle ? step.executionId : null,
    attemptCount: step.attemptCount,
    placedAt: step.placedAt,
    startedAt: step.isKept ? null : step.startedAt,
    completedAt: step.completedAt,
    expected: ahead === undefined ? null : { from: ahead.startsAt, to: ahead.endsAt, usualS: ahead.usualS },
    isCritical: critical.includes(step.step),
    words: null,
  };
}

function itemRow(step: Step, item: MapItem): TimedRow {
  return {
    key: `${step.step}\n${item.index}`,
    label: `[${item.index}]`,
    isItem: true,
    status: item.status,
    executionId: item.executionId,
    attemptCount: item.attemptCount,
    placedAt: item.createdAt,
    startedAt: item.startedAt,
    completedAt: item.completedAt,
    expected: null,
    isCritical: false,
    words: null,
  };
}
