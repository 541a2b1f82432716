import { useState } from "react";
import { change } from "../../api/client";
import { useMay } from "../../api/session";

import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { useAction } from "../../hooks/useAction";
import { plural } from "../../lib/format";
import { LastOfPool } from "./LastOfPool";
import { isStopped, type Worker } from "./words";

// Asks, and then drains. It is absent for those who may not, and where there is nothing to drain.
export function DrainButton({ worker, isSmall = true }: { worker: Worker; isSmall?: boolean }) {
  const may = useMay();
  const [isAsking, setAsking] = useState(false);
  const [hasAsked, setAsked] = useState(false);
  const drain = useAction(() => change("post", "/workers/{worker}/drain", { path: { worker: worker.workerId } }), {
    done: () => `Worker ${worker.name} drains: it claims nothing more, and exits when its executions have ended.`,
    failed: "Not drained",
  });
  if (!may("operate") || isStopped(worker) || worker.isLost || worker.state === "draining") return null;
  // The worker says so itself with its next heartbeat.
  if (hasAsked) return <span className="sm d2">draining</span>;
  const act = async () => {
    if ((await drain.run()) === undefined) return;
    setAsking(false);
    setAsked(true);
  };
  return (
    <>
      <Button isSmall={isSmall} onClick={() => setAsking(true)}>
        Drain…
      </Button>
      {isAsking && (
        <Confirm
          title={`Drain worker ${worker.name}?`}
          keep="Keep it at work"
          act="Drain it"
          isBusy={drain.isBusy}
          problem={drain.problem}
          onKeep={() => setAsking(false)}
          onAct={() => void act()}
        >
          It claims no more executions, exits when those that it holds have ended, and is not replaced.{" "}
          {worker.busy === 0
            ? "It holds none now."
            : `It holds ${plural(worker.busy, "execution")}; one that does not end within the grace period returns to its queue.`}
          <LastOfPool workerId={worker.workerId} />
        </Confirm>
      )}
    </>
  );
}
