import type { ReactNode } from "react";
import { Link } from "wouter";
import { Panel } from "../../components/Panel";
import { Time } from "../../components/Time";
import { WhyLadder } from "../../components/WhyLadder";
import type { Execution } from "./attempt";
import css from "./Ladder.module.css";
import { NearestWorkers } from "./NearestWorkers";
import { Remedies } from "./Remedies";
import { type LadderRung, rungsOf } from "./rungs";

const LOOKS: Record<string, "paused" | "waits"> = {
  due: "waits",
  job_paused: "paused",
  queue_paused: "paused",
  run_paused: "paused",
};

// Why it is not running: the checks that a claim makes, with the evidence for the failing one and what to do.
export function Ladder({ execution }: { execution: Execution }) {
  const checks = execution.why?.checks ?? [];
  if (checks.length === 0) return null;
  const rungs = rungsOf(checks).map((rung) => ({
    code: rung.check.code,
    holds: rung.holds,
    look: LOOKS[rung.check.code],
    title: rung.title,
    text: <Found rung={rung} execution={execution} />,
    evidence: rung.holds === false ? <Evidence rung={rung} execution={execution} /> : undefined,
  }));
  return (
    <Panel
      title="Why it is not running"
      note="the checks a claim makes, in order; the first that fails is the reason"
      isFlush
    >
      <WhyLadder rungs={rungs} />
      <Remedies checks={checks} execution={execution} />
    </Panel>
  );
}

function Found({ rung: { check, holds }, execution }: { rung: LadderRung; execution: Execution }): ReactNode {
  if (check.code === "due" && holds)
    return (
      <>
        since <Time at={execution.runAt} />
      </>
    );
  const place = placeOf(check.code, execution);
  if (holds === true && place !== null)
    return (
      <Link href={place.href} className="ln">
        {place.name}
      </Link>
    );
  if (holds === null && check.code === "slot") return <>{check.text}</>;
  return <>{check.text}</>;
}

function placeOf(code: string, execution: Execution): { name: string; href: string } | null {
  if (code === "job_paused") return { name: execution.job, href: `/jobs/${execution.app}/${execution.job}` };
  if (code === "queue_paused") return { name: execution.queue, href: `/queues/${encodeURIComponent(execution.queue)}` };
  return null;
}

function Evidence({ rung: { check }, execution }: { rung: LadderRung; execution: Execution }) {
  const evidence = check.evidence as Record<string, unknown> | null;
  if (check.code === "worker_fits" || check.code === "worker")
    return <NearestWorkers execution={execution} needs={evidence ?? {}} />;
  const at = typeof evidence?.at === "string" ? evidence.at : null;
  const until = check.until;
  if (check.code === "run_paused" && execution.runId !== null)
    return (
      <div className={css.more}>
        <Link href={`/runs/${execution.runId}`} className="ln">
          Open the run
        </Link>
      </div>
    );
  if (at === null && until === null) return null;
  return (
    <div className={`sm d3 ${css.more}`}>
      {at !== null && (
        <>
          since <Time at={at} />
        </>
      )}
      {until !== null && (
        <>
          until <Time at={until} />
        </>
      )}
    </div>
  );
}
