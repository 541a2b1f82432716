import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Answer } from "../../api/types";
import { Id } from "../../components/Id";
import { Duration, Time } from "../../components/Time";
import { plural } from "../../lib/format";
import { reasonWords } from "../../lib/reasons";
import { className, type Execution, errorOf } from "./attempt";
import { reasonCheck } from "./rungs";

interface Props {
  execution: Execution;
  isDead: boolean;
  forecast: Answer<"/executions/{execution}/forecast"> | undefined;
}

// What a person would say about it.
export function Sentence({ execution, isDead, forecast }: Props) {
  switch (execution.status) {
    case "failed":
      return <Failed execution={execution} isDead={isDead} />;
    case "running":
      return <Running execution={execution} endsAt={forecast?.endsAt ?? null} />;
    case "success":
      return (
        <>
          It ended well after <Duration from={execution.startedAt} to={execution.completedAt} />
          {execution.retryCount > 0 && `, on attempt ${execution.attemptCount}`}.
        </>
      );
    case "cancelled":
      return (
        <>
          It was cancelled at <Time at={execution.completedAt} />
          {execution.startedAt === null ? ", before it started" : ""}. <Replayed execution={execution} />
        </>
      );
    case "skipped":
      return <Skipped execution={execution} />;
    default:
      return <NotRunning execution={execution} />;
  }
}

const FAILURES: Record<string, string> = {
  timeout: "It ran longer than its timeout.",
  total_timeout: "It was not done within its time in all.",
  crash_loop: "Its worker died several times while it ran.",
  out_of_memory: "It needed more memory than it may have.",
  bad_arguments: "Its arguments do not fit the job.",
  step_failed: "A step of the run failed.",
  run_timeout: "The run was not done in time.",
};

function Failed({ execution, isDead }: { execution: Execution; isDead: boolean }) {
  const error = errorOf(execution.error);
  const number = execution.attemptCount;
  const how = number > 1 ? `All ${plural(number, "attempt")} failed` : "It failed";
  const known = FAILURES[execution.reason ?? ""];
  return (
    <>
      {known !== undefined && `${known} `}
      {error !== null && (
        <>
          {how} with <span className="mono">{[className(error.type), error.message].filter(Boolean).join(": ")}</span>.{" "}
        </>
      )}
      {execution.replayedBy !== null ? (
        <Replayed execution={execution} />
      ) : isDead ? (
        "It stays a dead letter until it is replayed or discarded."
      ) : null}
    </>
  );
}

function Replayed({ execution }: { execution: Execution }) {
  if (execution.replayedBy === null) return null;
  return (
    <>
      It was replayed as{" "}
      <Link href={`/executions/${execution.replayedBy}`} className="ln">
        <Id id={execution.replayedBy} />
      </Link>
      .
    </>
  );
}

function Running({ execution, endsAt }: { execution: Execution; endsAt: string | null }) {
  const percent = execution.progress === null ? "" : `${execution.progress} % done`;
  const isLate = endsAt !== null && Date.parse(endsAt) < Date.now();
  return (
    <>
      {execution.cancelRequestedAt === null ? "It has run" : "It was asked to stop, and has run"} for{" "}
      <Duration from={execution.startedAt} />
      {execution.worker === null ? "" : " on "}
      {execution.worker !== null && (
        <Link href={`/workers/${encodeURIComponent(execution.worker)}`} className="ln">
          {execution.worker}
        </Link>
      )}
      {percent === "" ? "" : `, ${percent}`}
      {endsAt === null ? "" : isLate ? ", longer than usual" : ", ends about "}
      {endsAt !== null && !isLate && <Time at={endsAt} />}.{" "}
      {execution.why?.text !== undefined && <b>{capital(execution.why.text)}.</b>}
    </>
  );
}

function Skipped({ execution }: { execution: Execution }): ReactNode {
  if (execution.reason === "start_deadline")
    return (
      <>
        It had not started by <Time at={execution.startBy ?? execution.completedAt} />, so it was skipped.
      </>
    );
  return <>It was skipped: {reasonWords(execution.reason ?? "")}.</>;
}

function NotRunning({ execution }: { execution: Execution }) {
  const check = reasonCheck(execution.why?.checks ?? []);
  if (check === null) return <>{capital(execution.why?.text ?? "It waits for a free slot")}.</>;
  if (check.code === "due") return <>It is {check.text}.</>;
  return (
    <>
      Not running because <b>{check.text}</b>.
    </>
  );
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
