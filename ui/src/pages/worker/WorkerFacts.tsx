import { Link } from "wouter";
import { Bytes } from "../../components/Count";
import { Facts } from "../../components/Facts";
import { Id } from "../../components/Id";
import { Panel } from "../../components/Panel";
import { Time } from "../../components/Time";
import { plural } from "../../lib/format";
import { isStopped, offersOf, poolOf, type Worker } from "../workers/words";
import css from "./WorkerFacts.module.css";

export function WorkerFacts({ worker }: { worker: Worker }) {
  const { processes } = worker;
  const range =
    processes &&
    (processes.least === processes.most ? String(processes.most) : `${processes.least} to ${processes.most}`);
  return (
    <Panel title="Facts">
      <Facts
        of={{
          id: <Id id={worker.workerId} />,
          app: worker.app,
          pool: poolOf(worker),
          offers: offersOf(worker) || null,
          queues:
            worker.queues === null ? (
              "all of its app"
            ) : (
              <Names of={worker.queues} to={(name) => `/queues/${encodeURIComponent(name)}`} />
            ),
          slots: isStopped(worker) ? worker.slots : `${worker.busy} of ${worker.slots} busy`,
          memory: worker.memoryBytes === null || isStopped(worker) ? null : <Bytes value={worker.memoryBytes} />,
          host: worker.host,
          process: `${worker.pid}${worker.supervisor === null ? "" : `, of ${worker.supervisor}`}`,
          processes: processes === null ? null : isStopped(worker) ? range : `${processes.live} of ${range}`,
          code: `Rota ${worker.version}${worker.deploy === null ? "" : `, deploy ${worker.deploy}`}`,
          started: <Time at={worker.startedAt} />,
          stopped: isStopped(worker) ? <Time at={worker.stoppedAt} /> : null,
        }}
      />
      <details className={css.jobs}>
        <summary>Can run {plural(worker.jobs.length, "job")}</summary>
        <Names of={worker.jobs} to={(name) => `/jobs/${encodeURIComponent(worker.app)}/${encodeURIComponent(name)}`} />
      </details>
    </Panel>
  );
}

function Names({ of, to }: { of: readonly string[]; to: (name: string) => string }) {
  return (
    <ul className={css.names}>
      {of.map((name) => (
        <li key={name} className="el">
          <Link href={to(name)} className="ln" title={name}>
            {name}
          </Link>
        </li>
      ))}
    </ul>
  );
}
