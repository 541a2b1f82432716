import { Facts } from "../../components/Facts";
import { Panel } from "../../components/Panel";
import { Age, Duration } from "../../components/Time";
import { plural } from "../../lib/format";
import { Heartbeats } from "../workers/Heartbeats";
import { isStopped, lateBeats, type Worker } from "../workers/words";

export function Beats({ worker }: { worker: Worker }) {
  const late = lateBeats(worker);
  const number = worker.heartbeats.length;
  return (
    <Panel
      title="Heartbeats"
      note={number === 0 ? (isStopped(worker) ? "not kept after the stop" : "none yet") : `the last ${number}`}
    >
      <div className="col">
        {number > 0 && <Heartbeats worker={worker} />}
        <Facts
          of={{
            late: number === 0 ? null : late === 0 ? "none" : plural(late, "heartbeat"),
            every: worker.heartbeatEvery > 0 ? <Duration seconds={worker.heartbeatEvery} /> : null,
            lease: isStopped(worker) ? null : worker.isLost ? (
              <>
                ran out <Age since={worker.leaseUntil} /> ago
              </>
            ) : (
              <>
                lasts <Age until={worker.leaseUntil} /> more without a heartbeat
              </>
            ),
          }}
        />
      </div>
    </Panel>
  );
}
