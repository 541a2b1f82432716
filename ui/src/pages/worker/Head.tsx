import { Callout } from "../../components/Panel";
import { Duration, Time } from "../../components/Time";
import { Verdict } from "../../components/Verdict";
import { DrainButton } from "../workers/DrainButton";
import { isStopped, offersOf, poolOf, stateOf, troubleOf, type Worker } from "../workers/words";
import { verdictOf } from "./verdict";

// The verdict; with a coloured edge if something is the matter.
export function Head({ worker }: { worker: Worker }) {
  const verdict = (
    <Verdict
      text={verdictOf(worker)}
      support={<Support worker={worker} />}
      actions={
        <span className="not-phone">
          <DrainButton worker={worker} isSmall={false} />
        </span>
      }
    />
  );
  const isLost = worker.isLost || worker.state === "lost";
  const isCalm = !isLost && troubleOf(worker) === null && (worker.state !== "draining" || isStopped(worker));
  return isCalm ? verdict : <Callout colour={stateOf(worker).colour}>{verdict}</Callout>;
}

function Support({ worker }: { worker: Worker }) {
  const pool = poolOf(worker);
  const offers = offersOf(worker);
  return (
    <>
      App {worker.app} · {pool === "all" ? "all pools" : `pool ${pool}`}
      {offers !== "" && ` · offers ${offers}`} ·{" "}
      {isStopped(worker) ? (
        <>
          stopped <Time at={worker.stoppedAt} /> after <Duration from={worker.startedAt} to={worker.stoppedAt} />
          {worker.ended?.cause && ` · ${worker.ended.cause}`}
          {worker.drainAskedBy && ` · drained by ${worker.drainAskedBy}`}
          {worker.troubleText && ` · its last trouble: ${worker.troubleText}`}
        </>
      ) : (
        <>
          up for <Duration from={worker.startedAt} /> · last heartbeat <Time at={worker.lastHeartbeat} />
        </>
      )}
    </>
  );
}
