import { lazy, Suspense } from "react";
import type { ChartProps } from "./Chart";
import css from "./Chart.module.css";

export type { ChartProps, Line } from "./Chart";

const Chart = lazy(() => import("./Chart"));

// A chart whose library is fetched when it is first shown. The space is kept, so nothing moves when it comes.
export function LazyChart(props: ChartProps) {
  return (
    <Suspense
      fallback={<div className={css.chart} role="status" aria-label="Loading" style={{ height: props.height ?? 96 }} />}
    >
      <Chart {...props} />
    </Suspense>
  );
}
