import { useState } from "react";
import { change } from "../../api/client";
import { useMay } from "../../api/session";
import { Button } from "../../components/Button";
import { CopyCommand } from "../../components/CopyCommand";
import { TextField } from "../../components/Field";
import { Age, Time } from "../../components/Time";
import { useAction } from "../../hooks/useAction";
import { useApi } from "../../hooks/useApi";
import type { Run, Step } from "./model";
import { few } from "./words";

// The question of a step that waits for a person, who may answer, and the answer itself.
export function Approval({ run, step }: { run: Run; step: Step }) {
  const may = useMay();
  const [note, setNote] = useState("");
  const asked = useApi("/approvals", { query: { run: run.runId, limit: 100 } }, { live: [`runs:${run.runId}`] });
  const approval = asked.data?.items.find((one) => one.step === step.step);
  const answer = useAction(
    (verb: "approve" | "reject") =>
      verb === "approve"
        ? change("post", "/approvals/{approval}/approve", {
            path: { approval: approval?.approvalId ?? "" },
            body: { note },
          })
        : change("post", "/approvals/{approval}/reject", {
            path: { approval: approval?.approvalId ?? "" },
            body: { note },
          }),
    {
      done: (given) => `${step.step} ${given.status === "approved" ? "approved" : "rejected"}. The run continues.`,
      failed: "Not answered",
    },
  );
  if (approval === undefined) return null;
  const who = approval.who.length === 0 ? "Operators" : few(approval.who);
  if (approval.status !== "open")
    return (
      <div className="col">
        <b>{approval.text}</b>
        <span className="sm d2">
          {approval.status}
          {approval.timedOut ? " because no answer came in time" : ` by ${approval.decidedBy ?? "a caller"}`},{" "}
          <Time at={approval.decidedAt} />
        </span>
        {approval.note && <span className="sm">“{approval.note}”</span>}
      </div>
    );
  return (
    <div className="col">
      <b>{approval.text}</b>
      <span className="sm d2">
        Asked of {who} for <Age since={approval.createdAt} />
        {approval.timeoutAt !== null && (
          <>
            ; without an answer {timeoutWords(approval.onTimeout)} <Time at={approval.timeoutAt} />
          </>
        )}
        .
      </span>
      {may("operate") ? (
        <form className="col" onSubmit={(event) => event.preventDefault()}>
          <TextField label="note" placeholder="shown to everybody" value={note} onChange={setNote} maxLength={200} />
          <div className="row">
            <Button kind="primary" disabled={answer.isBusy} onClick={() => void answer.run("approve")}>
              Approve
            </Button>
            <Button disabled={answer.isBusy} onClick={() => void answer.run("reject")}>
              Reject
            </Button>
          </div>
          {answer.problem && <p className="sm c-failed">{answer.problem.message}</p>}
        </form>
      ) : (
        <>
          <span className="sm d2">Operators can answer, here or with</span>
          <CopyCommand command={step.wait?.commands[0] ?? `rota run approve ${run.runId} ${step.step}`} />
        </>
      )}
    </div>
  );
}

function timeoutWords(outcome: string): string {
  if (outcome === "approve") return "it is approved at";
  return outcome === "fail" ? "the step fails at" : "it is rejected at";
}
