import { useState } from "react";
import { change } from "../../api/client";
import { useMay } from "../../api/session";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { useAction } from "../../hooks/useAction";
import { useKeys } from "../../hooks/useKeys";
import { plural } from "../../lib/format";
import { isOpen, type Run, type Step } from "./model";
import { RetryDialog } from "./RetryDialog";

type Question = "pause" | "cancel" | "retry";

// Pause, resume and cancel of an open run; retry of one that has ended.
export function RunActions({ run, steps }: { run: Run; steps: readonly Step[] }) {
  const may = useMay();
  const [asking, setAsking] = useState<Question | null>(null);
  const path = { run: run.runId };
  const resume = useAction(() => change("post", "/runs/{run}/resume", { path, body: {} }), {
    done: () => `Run of ${run.workflow} resumed.`,
    failed: "Not resumed",
  });
  const pause = useAction((note: string) => change("post", "/runs/{run}/pause", { path, body: { note } }), {
    done: () => ({
      text: `Run of ${run.workflow} paused.`,
      action: { label: "Undo: resume", run: () => void resume.run() },
    }),
    failed: "Not paused",
  });
  const cancel = useAction(() => change("post", "/runs/{run}/cancel", { path, body: {} }), {
    done: () => "The run stops: no further step starts.",
    failed: "Not cancelled",
  });
  const isOpenRun = run.completedAt === null;
  const isAble = may("operate");
  const canPause = isAble && isOpenRun && run.paused === null;
  const canCancel = isAble && isOpenRun && run.stopping === null;
  const canRetry = isAble && !isOpenRun && run.retry !== null && run.retriedAs === null;
  useKeys({
    ...(canPause ? { p: { does: "pause the run", run: () => setAsking("pause") } } : {}),
    ...(canCancel ? { c: { does: "cancel the run", run: () => setAsking("cancel") } } : {}),
    ...(canRetry ? { r: { does: "retry the run", run: () => setAsking("retry") } } : {}),
  });
  const running = steps.filter(isOpen).length;
  const close = () => setAsking(null);
  return (
    <span className="row">
      {canPause && (
        <Button icon="pause" title="p" onClick={() => setAsking("pause")}>
          Pause run…
        </Button>
      )}
      {isAble && isOpenRun && run.paused !== null && (
        <Button kind="primary" icon="play" disabled={resume.isBusy} onClick={() => void resume.run()}>
          Resume run
        </Button>
      )}
      {canCancel && (
        <Button title="c" onClick={() => setAsking("cancel")}>
          Cancel run…
        </Button>
      )}
      {canRetry && (
        <Button kind="primary" title="r" onClick={() => setAsking("retry")}>
          Retry run…
        </Button>
      )}
      {asking === "pause" && (
        <Confirm
          title={`Pause this run of ${run.workflow}?`}
          keep="Keep running"
          act="Pause run"
          hasNote
          isBusy={pause.isBusy}
          problem={pause.problem}
          onKeep={close}
          onAct={(note) => void pause.run(note).then((done) => done !== undefined && close())}
        >
          {running === 0 ? "No step runs now." : `${plural(running, "step")} will run to the end.`} No further step
          starts until the run is resumed.
        </Confirm>
      )}
      {asking === "cancel" && (
        <Confirm
          title={`Cancel this run of ${run.workflow}?`}
          keep="Keep running"
          act="Cancel run"
          isBusy={cancel.isBusy}
          problem={cancel.problem}
          onKeep={close}
          onAct={() => void cancel.run().then((done) => done !== undefined && close())}
        >
          No further step starts.{" "}
          {running === 0
            ? ""
            : `${plural(running, "open step")} will be asked to stop within a second; code that does not look may finish. `}
          A cancelled run cannot be continued, only retried as a new run.
        </Confirm>
      )}
      {asking === "retry" && <RetryDialog run={run} steps={steps} onClose={close} />}
    </span>
  );
}
