import { changeAt } from "../../api/client";
import { useMay } from "../../api/session";
import { Button, ButtonLink } from "../../components/Button";
import { CopyCommand } from "../../components/CopyCommand";
import { useAction } from "../../hooks/useAction";
import type { Execution } from "./attempt";
import css from "./Ladder.module.css";
import { workerCommand } from "./NearestWorkers";
import type { Check } from "./rungs";

// What makes it run: a button for what the viewer may do, the command for the rest.
export function Remedies({ checks, execution }: { checks: readonly Check[]; execution: Execution }) {
  const failing = checks.filter((check) => check.holds === false && isMendable(check));
  if (failing.length === 0) return null;
  return (
    <div className={css.remedies}>
      <b>What makes it run</b>
      {failing.map((check) => (
        <Remedy key={check.code} check={check} execution={execution} />
      ))}
    </div>
  );
}

const WORKER = ["worker", "worker_has_job", "worker_fits"];

function isMendable(check: Check): boolean {
  return check.remedy !== null || check.code === "dependencies" || check.code === "worker_starts";
}

function Remedy({ check, execution }: { check: Check; execution: Execution }) {
  const may = useMay();
  if (WORKER.includes(check.code))
    return (
      <div className={css.remedy}>
        <span className="sm d2">Start a worker</span>
        <CopyCommand command={workerCommand(execution, (check.evidence as Record<string, unknown> | null) ?? {})} />
      </div>
    );
  if (check.code === "wait" || check.code === "approval")
    return (
      <div className={css.remedy}>
        <span className="sm d2">Answer it</span>
        <span>
          <ButtonLink href={execution.runId === null ? "/runs" : `/runs/${execution.runId}`}>Open the run</ButtonLink>
        </span>
      </div>
    );
  if (check.code === "dependencies")
    return (
      <div className={css.remedy}>
        <span className="sm d2">See its upstream</span>
        <span>
          <ButtonLink href={`/jobs/${execution.app}/${execution.job}`}>Open the job</ButtonLink>
        </span>
      </div>
    );
  if (check.code === "worker_starts")
    return (
      <div className={css.remedy}>
        <span className="sm d2">Mend the worker</span>
        <span>
          <ButtonLink href="/workers">Open the workers</ButtonLink>
        </span>
      </div>
    );
  const { remedy } = check;
  if (remedy === null) return null;
  if (remedy.method !== null && remedy.path !== null && may("operate")) return <Press check={check} />;
  return (
    <div className={css.remedy}>
      <span className="sm d2">{LABELS[check.code]?.(check) ?? "Run this"}</span>
      {remedy.command === null ? <span>{remedy.text}</span> : <CopyCommand command={remedy.command} />}
    </div>
  );
}

const LABELS: Record<string, (check: Check) => string> = {
  due: () => "Run now",
  job_paused: (check) => `Resume job ${check.subject}`,
  queue_paused: (check) => `Resume queue ${check.subject}`,
  run_paused: () => "Resume the run",
  breaker: (check) => `Close breaker ${check.subject}`,
};

function Press({ check }: { check: Check }) {
  const { method, path, text } = check.remedy ?? { method: null, path: null, text: "" };
  const label = LABELS[check.code]?.(check) ?? text;
  const evidence = check.evidence as { note?: unknown } | null;
  const undo = path?.includes("/resume") ? path.replace("/resume", "/pause") : null;
  const send = useAction(
    () => changeAt(method ?? "POST", path ?? "", check.code === "due" ? { runAt: "now" } : undefined),
    {
      done: () =>
        undo === null
          ? `${label}: done.`
          : {
              text: `${check.subject ?? "It"} resumed.`,
              action: {
                label: "Undo: pause again",
                run: () => void changeAt("POST", undo, { note: evidence?.note ?? null }),
              },
            },
      failed: "Not done",
    },
  );
  return (
    <div className="row wrap">
      <Button disabled={send.isBusy} onClick={() => void send.run()}>
        {label}
      </Button>
      <span className="sm d3">{check.text}</span>
    </div>
  );
}
