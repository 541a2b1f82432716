import type { Answer } from "../../api/types";
import { Panel } from "../../components/Panel";
import { Loaded } from "../../components/States";
import { useApi } from "../../hooks/useApi";
import { serverNow } from "../../hooks/useNow";
import { boundsOf, useTimeRange } from "../../hooks/useTimeRange";
import { ChartCell } from "./ChartCell";
import css from "./Charts.module.css";
import { grouped } from "./changeGroups";
import { cellsOf } from "./chartData";
import { stepOf } from "./step";
import { WhatChanged } from "./WhatChanged";

const METRICS = [
  "success",
  "failed",
  "startLatency.p50",
  "startLatency.p95",
  "startLatency.p99",
  "busy",
  "slots",
] as const;

// Traffic, errors, latency and saturation on one axis of time, and what was changed meanwhile.
export function Charts({ numbers }: { numbers: Answer<"/overview">["numbers"] }) {
  const { since, until } = useTimeRange();
  const [begin, end] = boundsOf(since, until, serverNow());
  const range = { from: since, to: until ?? undefined };
  const stats = useApi(
    "/stats",
    { query: { ...range, metrics: [...METRICS], step: String(stepOf(begin, end, serverNow())), usual: true } },
    { live: ["pulse"], everyMs: 5000 },
  );
  // A worker that comes, goes or is lost, and a version, are in the pulse only.
  const changes = useApi(
    "/changes",
    { query: { ...range, limit: 200 } },
    { live: ["changes", "pulse"], everyMs: 2000 },
  );
  const groups = grouped(changes.data?.items ?? []);
  const marks = groups.map((group) => Date.parse(group.at) / 1000);
  return (
    <Panel isFlush>
      <Loaded what="The statistics" query={stats}>
        {(data) => (
          <div className={css.cells}>
            {cellsOf(data, numbers).map((cell) => (
              <ChartCell key={cell.title} cell={cell} marks={marks} />
            ))}
          </div>
        )}
      </Loaded>
      {changes.data !== undefined && (
        <WhatChanged groups={groups} number={changes.data.items.length} hasMore={changes.data.nextCursor !== null} />
      )}
    </Panel>
  );
}
