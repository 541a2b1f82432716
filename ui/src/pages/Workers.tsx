import type { Answer } from "../api/types";
import { Page } from "../app/Page";
import { CopyCommand } from "../components/CopyCommand";
import { Panel } from "../components/Panel";
import { RangePicker } from "../components/RangePicker";
import { Empty, Loaded } from "../components/States";
import { Verdict } from "../components/Verdict";
import { useApi } from "../hooks/useApi";
import { rangeWords, useTimeRange } from "../hooks/useTimeRange";
import { plural } from "../lib/format";
import { EnoughSlots } from "./workers/EnoughSlots";
import { lackingPools, WorkerTable } from "./workers/WorkerTable";
import { isStopped, troubleOf, type Worker } from "./workers/words";

export default function Workers() {
  const { since } = useTimeRange();
  const workers = useApi("/workers", { query: { since, limit: 1000 } }, { live: ["pulse", "changes"], everyMs: 2000 });
  const load = useApi("/load", {}, { live: ["pulse"], everyMs: 5000 });
  const all = workers.data?.items ?? [];
  return (
    <Page title="Workers" context={<RangePicker />} verdict={workers.data && verdictOf(all, load.data)}>
      <Loaded what="Workers" query={workers}>
        {({ items }) => (
          <div className="stack">
            <Verdict text={verdictOf(items, load.data)} support={supportOf(items, since)} />
            <Panel isFlush>
              {items.length === 0 ? <NoWorkers /> : <WorkerTable workers={items} since={since} load={load.data} />}
            </Panel>
          </div>
        )}
      </Loaded>
      <Panel title="Enough slots?" note="to start what waits within a minute" isFlush>
        <Loaded what="The load" query={load}>
          {(data: Answer<"/load">) => <EnoughSlots load={data} />}
        </Loaded>
      </Panel>
    </Page>
  );
}

function NoWorkers() {
  return (
    <Empty title="Start a worker">
      <span>Executions wait until a worker of their app starts.</span>
      <CopyCommand command="rota worker MODULE:APP" />
    </Empty>
  );
}

function verdictOf(workers: readonly Worker[], load: Answer<"/load"> | undefined): string {
  const live = workers.filter((worker) => !isStopped(worker));
  const bad = live.filter((worker) => troubleOf(worker) !== null).length;
  const lacking = lackingPools(load).size;
  const pools = lacking === 0 ? "" : `, ${lacking} ${lacking === 1 ? "pool lacks" : "pools lack"} a worker`;
  if (live.length === 0) return "No worker is at work";
  if (bad > 0) return `${bad} of ${plural(live.length, "worker")} ${bad === 1 ? "has" : "have"} trouble${pools}`;
  return `${plural(live.length, "worker")} at work${pools === "" ? ", no trouble" : pools}`;
}

function supportOf(workers: readonly Worker[], since: string): string {
  const live = workers.filter((worker) => !isStopped(worker));
  const busy = live.reduce((sum, worker) => sum + worker.busy, 0);
  const slots = live.reduce((sum, worker) => sum + worker.slots, 0);
  const gone = workers.filter(isStopped);
  const lost = gone.filter((worker) => worker.state === "lost").length;
  const words = lost > 0 ? `${lost} lost` : gone.length === 0 ? "none stopped" : `${gone.length} stopped`;
  return `${busy} of ${plural(slots, "slot")} busy · ${words} in the ${rangeWords(since)}`;
}
