import { useState } from "react";
import { change } from "../../api/client";
import { useMay } from "../../api/session";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { useAction } from "../../hooks/useAction";
import { useKeys } from "../../hooks/useKeys";
import { useUrlState } from "../../hooks/useUrlState";
import { RunDialog } from "./RunDialog";
import type { Job } from "./useRuns";

// Run…, and Pause… or Resume.
export function JobActions({ job }: { job: Job }) {
  const may = useMay();
  const url = useUrlState();
  const [isPausing, setPausing] = useState(false);
  const path = { job: job.jobId };
  const resume = useAction(() => change("post", "/jobs/{job}/resume", { path }), {
    done: () => ({
      text: `Job ${job.name} resumed.`,
      action: { label: "Undo: pause again", run: () => setPausing(true) },
    }),
    failed: "Not resumed",
  });
  const pause = useAction((note: string) => change("post", "/jobs/{job}/pause", { path, body: { note } }), {
    done: () => ({ text: `Job ${job.name} paused.`, action: { label: "Undo: resume", run: () => void resume.run() } }),
    failed: "Not paused",
  });
  const isDeleted = job.state === "deleted";
  const canRun = may("enqueue") && !isDeleted;
  const canPause = may("operate") && job.state === "active";
  const ask = () => url.set({ run: "1" }, { replace: true });
  useKeys({
    ...(canRun ? { n: { does: "run the job", run: ask } } : {}),
    ...(canPause ? { p: { does: "pause the job", run: () => setPausing(true) } } : {}),
  });
  return (
    <span className="row">
      {canRun && (
        <Button kind="primary" icon="play" onClick={ask}>
          Run…
        </Button>
      )}
      {canPause && <Button onClick={() => setPausing(true)}>Pause…</Button>}
      {may("operate") && job.state === "paused" && (
        <Button disabled={resume.isBusy} onClick={() => void resume.run()}>
          Resume
        </Button>
      )}
      {canRun && url.one("run") !== null && (
        <RunDialog job={job} onClose={() => url.set({ run: null }, { replace: true })} />
      )}
      {isPausing && (
        <Confirm
          title={`Pause job ${job.name}?`}
          keep="Keep it active"
          act="Pause job"
          hasNote
          isBusy={pause.isBusy}
          problem={pause.problem}
          onKeep={() => setPausing(false)}
          onAct={(note) => void pause.run(note).then((done) => done !== undefined && setPausing(false))}
        >
          What runs continues to its end. Executions of it are accepted and wait until it is resumed.
        </Confirm>
      )}
    </span>
  );
}
