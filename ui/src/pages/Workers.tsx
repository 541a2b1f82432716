import type { Answer, Item } from "../api/types";
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
import { WorkerTable } from "./workers/WorkerTable";
import { isStopped, troubleOf } from "./workers/words";

type Worker = Item<"/workers">;

export default function Workers() {
  const { since } = useTimeRange();
  const workers = useApi("/workers", { query: { since, limit: 1000 } }, { live: ["pulse", "changes"], everyMs: 2000 });
  const load = useApi("/load", {}, { live: ["pulse"], everyMs: 5000 });
  const all = workers.data?.items ?? [];
  return (
    <Page title="Workers" context={<RangePicker />} verdict={workers.data && verdictOf(all)}>
      <Loaded what="Workers" query={workers}>
        {({ items }) => (
          <div className="stack">
            <Verdict text={verdictOf(items)} support={supportOf(items, since)} />
            <Panel isFlush>{items.length === 0 ? <NoWorkers /> : <WorkerTable workers={items} since={since} />}</Panel>
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
    <Empty title="No worker is at work">
      <span>Executions wait until a worker of their app starts.</span>
      <CopyCommand command="rota worker MODULE:APP" />
    </Empty>
  );
}

function verdictOf(workers: readonly Worker[]): string {
  const live = workers.filter((worker) => !isStopped(worker));
  const bad = live.filter((worker) => troubleOf(worker) !== null);
  if (live.length === 0) return "No worker is at work";
  if (bad.length > 0)
    return `${bad.length} of ${plural(live.length, "worker")} ${bad.length === 1 ? "has" : "have"} trouble`;
  return `${plural(live.length, "worker")} at work, no trouble`;
}

function supportOf(workers: readonly Worker[], since: string): string {
  const live = workers.filter((worker) => !isStopped(worker));
  const busy = live.reduce((sum, worker) => sum + worker.busy, 0);
  const slots = live.reduce((sum, worker) => sum + worker.slots, 0);
  const gone = workers.length - live.length;
  return `${busy} of ${plural(slots, "slot")} busy · ${gone === 0 ? "none" : gone} stopped in the ${rangeWords(since)}`;
}
