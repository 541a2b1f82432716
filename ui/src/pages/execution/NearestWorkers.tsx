import { Link } from "wouter";
import type { Item } from "../../api/types";
import { Icon } from "../../components/Icon";
import { MarkChip } from "../../components/StateChip";
import { useApi } from "../../hooks/useApi";
import { count } from "../../lib/format";
import type { Execution } from "./attempt";
import css from "./Ladder.module.css";

type Worker = Item<"/workers">;

interface Need {
  name: string;
  // What the worker has instead; null if it has it.
  lacks: (worker: Worker) => string | null;
}

const MOST = 3;

// The live workers that come nearest to what the execution needs, and what each of them lacks.
export function NearestWorkers({ execution, needs }: { execution: Execution; needs: Record<string, unknown> }) {
  const found = useApi("/workers", { query: { limit: 200 } }, { live: ["pulse", "changes"], everyMs: 5000 });
  const wanted = needsOf(execution, needs);
  const workers = (found.data?.items ?? []).filter((worker) => worker.stoppedAt === null);
  if (workers.length === 0 || wanted.length === 0) return null;
  const lackOf = (worker: Worker) => wanted.filter((need) => need.lacks(worker) !== null).length;
  const nearest = [...workers].sort((one, other) => lackOf(one) - lackOf(other)).slice(0, MOST);
  return (
    <>
      <div>
        {count(workers.length)} {workers.length === 1 ? "worker is" : "workers are"} live; none has all of it.
      </div>
      <table className={css.nearest}>
        <thead>
          <tr>
            <th>nearest workers</th>
            {wanted.map((need) => (
              <th key={need.name}>{need.name}</th>
            ))}
            <th>state</th>
          </tr>
        </thead>
        <tbody>
          {nearest.map((worker) => (
            <tr key={worker.workerId}>
              <td>
                <Link href={`/workers/${worker.workerId}`} className="ln">
                  {worker.name}
                </Link>
              </td>
              {wanted.map((need) => (
                <td key={need.name}>
                  <Has lacks={need.lacks(worker)} />
                </td>
              ))}
              <td>
                <WorkerState worker={worker} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function Has({ lacks }: { lacks: string | null }) {
  if (lacks === null) return <Icon name="tick" className="c-success" />;
  return (
    <span className="row" style={{ gap: 6 }}>
      <Icon name="cross" className="c-failed" />
      {lacks}
    </span>
  );
}

function WorkerState({ worker }: { worker: Worker }) {
  if (worker.isLost)
    return (
      <MarkChip icon="octagon-cross" colour="failed">
        Lost
      </MarkChip>
    );
  if (worker.state === "draining")
    return (
      <MarkChip icon="pause" colour="warn">
        Draining
      </MarkChip>
    );
  const isBusy = worker.busy > 0;
  return (
    <MarkChip icon={isBusy ? "disc-play" : "dash"} colour={isBusy ? "running" : "rest"}>
      {isBusy ? "Busy" : "Idle"}
    </MarkChip>
  );
}

interface Offers {
  pools?: string[];
  tags?: string[];
  resources?: Record<string, number>;
  everything?: boolean;
}

function needsOf(execution: Execution, needs: Record<string, unknown>): Need[] {
  const { pool, tags, resources } = needs as { pool?: string; tags?: string[]; resources?: Record<string, number> };
  const found: Need[] = [
    { name: `app ${execution.app}`, lacks: (worker) => (worker.app === execution.app ? null : (worker.app ?? "none")) },
  ];
  const offers = (worker: Worker) => worker.offers as Offers;
  const or = (worker: Worker, lack: string | null) => (offers(worker).everything ? null : lack);
  if (pool !== undefined)
    found.push({
      name: `pool ${pool}`,
      lacks: (worker) =>
        or(worker, offers(worker).pools?.includes(pool) ? null : (offers(worker).pools ?? ["default"]).join(", ")),
    });
  for (const tag of tags ?? [])
    found.push({
      name: `tag ${tag}`,
      lacks: (worker) =>
        or(worker, offers(worker).tags?.includes(tag) ? null : offers(worker).tags?.join(", ") || "none"),
    });
  for (const [name, amount] of Object.entries(resources ?? {}))
    found.push({
      name: `${name}=${amount}`,
      lacks: (worker) => {
        const has = offers(worker).resources?.[name] ?? 0;
        return or(worker, has >= amount ? null : has === 0 ? "none" : String(has));
      },
    });
  return found.length > 1 ? found.slice(1) : found;
}

// The command that starts a worker which has all of it.
export function workerCommand(execution: Execution, needs: Record<string, unknown>): string {
  const { pool, tags, resources } = needs as { pool?: string; tags?: string[]; resources?: Record<string, number> };
  const flags = [
    ...(pool === undefined || pool === "default" ? [] : [`--pool ${pool}`]),
    ...(tags ?? []).map((tag) => `--tag ${tag}`),
    ...Object.entries(resources ?? {}).map(([name, amount]) => `--resource ${name}=${amount}`),
  ];
  return ["rota worker", `MODULE:${execution.app}`, ...flags].join(" ");
}
