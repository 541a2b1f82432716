import { useState } from "react";
import { LazyChart, type Line } from "../../components/LazyChart";
import { Sparkline } from "../../components/Sparkline";
import { useIsPhone } from "../../hooks/useMedia";
import { useZone } from "../../hooks/useZone";
import { clockTime } from "../../lib/zone";
import { known } from "../findings/series";
import css from "./Charts.module.css";
import type { Cell } from "./chartData";

interface Props {
  cell: Cell;
  marks: readonly number[];
}

// One of the four charts. Under the cursor, the head has the value of that time.
export function ChartCell({ cell, marks }: Props) {
  const isPhone = useIsPhone();
  const { zone } = useZone();
  const [at, setAt] = useState<number | null>(null);
  const time = at === null ? undefined : cell.times[at];
  const value = at === null ? null : (cell.main.values[at] ?? null);
  return (
    <div className={css.cell}>
      <div className={css.head}>
        <span className="el">{cell.title}</span>
        {!isPhone && <Legend lines={cell.legend} />}
      </div>
      <div className={css.value}>
        <b>{time === undefined ? cell.value : value === null ? "—" : cell.format(value)}</b>
        <span className="sm d3 el">
          {time === undefined ? cell.note : `at ${clockTime(new Date(time * 1000), zone)}`}
        </span>
      </div>
      {isPhone ? (
        <Sparkline
          points={known(cell.main.values)}
          label={cell.sentence}
          width={150}
          height={28}
          colour={cell.main.colour}
        />
      ) : (
        <LazyChart
          times={cell.times}
          lines={cell.lines}
          sentence={cell.sentence}
          format={cell.format}
          marks={marks}
          height={92}
          cursor="overview"
          isSmall
          onCursor={setAt}
        />
      )}
    </div>
  );
}

function Legend({ lines }: { lines: readonly Line[] }) {
  return (
    <span className={css.legend}>
      {lines.map((line) => (
        <span key={line.label}>
          <svg width="12" height="8" aria-hidden="true">
            <path
              d="M0 4h12"
              stroke={`var(--${line.colour})`}
              strokeWidth={line.kind === "band" ? 8 : 2}
              strokeDasharray={line.kind === "dashed" ? "3 2" : undefined}
            />
          </svg>
          {line.label}
        </span>
      ))}
    </span>
  );
}
