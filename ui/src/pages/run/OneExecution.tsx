import { useState } from "react";
import { Link } from "wouter";
import { change } from "../../api/client";
import { useMay } from "../../api/session";
import type { Answer } from "../../api/types";
import { Button, ButtonLink } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { StateChip } from "../../components/StateChip";
import { Duration } from "../../components/Time";
import { useAction } from "../../hooks/useAction";
import { useApi } from "../../hooks/useApi";
import { argumentsInLine } from "../../lib/format";
import { hasEnded } from "../../lib/states";
import css from "./Run.module.css";

interface Props {
  id: string;
  // "[17]" of a map; null for the only execution of a step.
  index: number | null;
}

// The execution of a step or an item: its state, the error of its latest attempt, and what to do.
export function OneExecution({ id, index }: Props) {
  const found = useApi(
    "/executions/{execution}",
    { path: { execution: id } },
    { live: [`executions:${id}`, "pulse"], everyMs: 2000, keep: false },
  );
  const one = found.data;
  if (one === undefined) return null;
  const address = `/executions/${id}`;
  const error = errorOf(one);
  const given = one.arguments as Record<string, unknown> | null;
  return (
    <div className="col" style={{ gap: 6 }}>
      <div className="row">
        <StateChip status={one.status} />
        {index !== null && <b className="nw">[{index}]</b>}
        <span className="gr el sm d2" title={argumentsInLine(given)}>
          {argumentsInLine(given)}
        </span>
        <Link href={address} className="sm ln d2">
          Open
        </Link>
      </div>
      <p className="sm d2">
        Attempt {Math.max(1, one.attemptCount)}
        {one.startedAt !== null && (
          <>
            , {hasEnded(one.status) ? "took" : "for"} <Duration from={one.startedAt} to={one.completedAt} />
          </>
        )}
        . {error !== null && errorWords(one.status, one.attemptCount)}
      </p>
      {error !== null && (
        <Link href={address} className={css.error}>
          {error}
        </Link>
      )}
      {one.why !== null && !hasEnded(one.status) && one.status !== "running" && (
        <p className="sm d2">It {one.why.text}.</p>
      )}
      <div className="row wrap">
        <ButtonLink isSmall href={`${address}#log`}>
          Log
        </ButtonLink>
        {!hasEnded(one.status) && (
          <CancelButton id={id} what={index === null ? "step" : "item"} isRunning={one.status === "running"} />
        )}
      </div>
    </div>
  );
}

// An attempt that was given back has no error; then that of the attempt before it is shown.
function errorOf(one: Answer<"/executions/{execution}">): string | null {
  if (one.errorMessage !== null || one.status === "success") return one.status === "success" ? null : one.errorMessage;
  const failed = one.attempts.find((attempt) => attempt.error !== null);
  const { type, message } = (failed?.error ?? {}) as { type?: string; message?: string };
  return type === undefined ? null : `${type}: ${message ?? ""}`;
}

function errorWords(status: string, attempts: number): string {
  if (status === "failed") return "It failed with";
  return attempts > 2 ? "The ones before failed, the last one with" : "The one before failed with";
}

function CancelButton({ id, what, isRunning }: { id: string; what: string; isRunning: boolean }) {
  const may = useMay();
  const [isAsking, setAsking] = useState(false);
  const cancel = useAction(
    () => change("post", "/executions/{execution}/cancel", { path: { execution: id }, body: {} }),
    {
      done: () => (isRunning ? `The ${what} is asked to stop.` : `The ${what} is cancelled.`),
      failed: "Not cancelled",
    },
  );
  if (!may("operate")) return null;
  return (
    <>
      <Button isSmall onClick={() => setAsking(true)}>
        Cancel {what}…
      </Button>
      {isAsking && (
        <Confirm
          title={isRunning ? "Ask 1 to stop?" : `Cancel this ${what}?`}
          keep="Keep running"
          act="Cancel 1"
          isBusy={cancel.isBusy}
          problem={cancel.problem}
          onKeep={() => setAsking(false)}
          onAct={() => void cancel.run().then((done) => done !== undefined && setAsking(false))}
        >
          {isRunning && "It gets the request within a second; code that does not look may finish. "}
          Steps that need its result do not run.
        </Confirm>
      )}
    </>
  );
}
