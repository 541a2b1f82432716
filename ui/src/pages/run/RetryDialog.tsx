import { useState } from "react";
import { useLocation } from "wouter";
import { change } from "../../api/client";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { ChoiceField } from "../../components/Field";
import { Icon } from "../../components/Icon";
import { StateIcon } from "../../components/StateIcon";
import { useAction } from "../../hooks/useAction";
import { plural } from "../../lib/format";
import { after, byName, isReached, type Run, type Step } from "./model";
import css from "./Retry.module.css";
import { titleOf } from "./words";

interface Props {
  run: Run;
  steps: readonly Step[];
  onClose: () => void;
}

// What a retry keeps and what it runs again, before it is asked for. A retry is a new run.
export function RetryDialog({ run, steps, onClose }: Props) {
  const [, go] = useLocation();
  const [from, setFrom] = useState("");
  const retry = useAction(
    () =>
      change("post", "/runs/{run}/retry", { path: { run: run.runId }, body: from === "" ? {} : { fromStep: from } }),
    { done: () => `Run of ${run.workflow} retried as a new run.`, failed: "Not retried" },
  );
  const again = againOf(run, steps, from);
  const kept = steps.filter((step) => !again.has(step.step) && step.status === "success");
  const act = async () => {
    const made = await retry.run();
    if (made !== undefined) go(`/runs/${made.runId}`);
  };
  return (
    <Dialog
      title={`Retry this run of ${run.workflow}?`}
      onClose={onClose}
      isWide
      foot={
        <>
          <Button onClick={onClose}>Keep it as it is</Button>
          <Button kind="primary" disabled={retry.isBusy} onClick={() => void act()}>
            Retry {plural(again.size, "step")}
          </Button>
        </>
      }
    >
      <div className="col">
        <p className="d2">It becomes a new run; this one stays in the history.</p>
        <ChoiceField
          label="from"
          value={from}
          options={[
            { value: "", label: "what did not succeed" },
            ...steps
              .filter(isReached)
              .map((step) => ({ value: step.step, label: `step ${step.step}, and all after it` })),
          ]}
          onChange={setFrom}
        />
        <div className={css.lists}>
          <section aria-label="Runs again">
            <b>Runs again: {again.size}</b>
            <ul>
              {steps
                .filter((step) => again.has(step.step))
                .map((step) => (
                  <li key={step.step} className="el">
                    <Icon name="arrow-circle" className="c-rest" /> {titleOf(step)} {partWords(run, step, from)}
                  </li>
                ))}
            </ul>
          </section>
          <section aria-label="Kept">
            <b>Kept: {kept.length}</b>
            <ul>
              {kept.map((step) => (
                <li key={step.step} className="el d2">
                  <StateIcon status="success" /> {titleOf(step)}
                </li>
              ))}
              {kept.length === 0 && <li className="d3">Every step runs again.</li>}
            </ul>
          </section>
        </div>
        {(run.retry?.undos.length ?? 0) > 0 && (
          <p className="sm d2">Were undone, so they run again: {run.retry?.undos.join(", ")}.</p>
        )}
        {retry.problem && <p className="sm c-failed">{retry.problem.message}</p>}
      </div>
    </Dialog>
  );
}

function againOf(run: Run, steps: readonly Step[], from: string): Set<string> {
  const again = new Set(run.retry?.again ?? []);
  if (from === "") return again;
  return new Set([...again, from, ...after(from, byName(steps))]);
}

// Of a map only the items that did not succeed run again, unless the retry begins at it or before it.
function partWords(run: Run, step: Step, from: string): string {
  const part = run.retry?.partial.find((one) => one.step === step.step);
  return part === undefined || from !== "" ? "" : `(${part.againCount} of ${plural(part.width, "item")})`;
}
