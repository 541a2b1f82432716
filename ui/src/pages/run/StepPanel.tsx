import { Link } from "wouter";
import { ButtonLink } from "../../components/Button";
import { CopyCommand } from "../../components/CopyCommand";
import { Facts } from "../../components/Facts";
import { Panel } from "../../components/Panel";
import { Segmented } from "../../components/Segmented";
import { StateChip } from "../../components/StateChip";
import { Time } from "../../components/Time";
import { useUrlState } from "../../hooks/useUrlState";
import { Approval } from "./Approval";
import { MapGrid } from "./MapGrid";
import { isReached, type Run, type Step } from "./model";
import { OneExecution } from "./OneExecution";
import css from "./Run.module.css";
import { MOST_CELLS, useItems, worstItem } from "./useItems";
import { few, stateWord, statusOf, titleOf } from "./words";

// The chosen step: a map with its items, a question, a run below, or one execution.
export function StepPanel({ run, step }: { run: Run; step: Step }) {
  const url = useUrlState();
  const isDefinition = url.one("show") === "definition";
  const views = [
    { value: "now", label: step.map === null ? "State" : "Items" },
    { value: "definition", label: "Definition" },
  ];
  return (
    <Panel
      title={<span title={titleOf(step)}>{titleOf(step)}</span>}
      isFlush
      right={
        <Segmented
          label="What is shown of the step"
          value={isDefinition ? "definition" : "now"}
          options={views}
          onChange={(value) => url.set({ show: value === "now" ? null : value }, { replace: true })}
        />
      }
    >
      {isDefinition ? <Definition run={run} step={step} /> : <Content run={run} step={step} />}
    </Panel>
  );
}

function Content({ run, step }: { run: Run; step: Step }) {
  if (step.map !== null && isReached(step)) return <MapContent run={run} step={step} />;
  return (
    <div className={css.part}>
      <Single run={run} step={step} />
    </div>
  );
}

function MapContent({ run, step }: { run: Run; step: Step }) {
  const url = useUrlState();
  const { items } = useItems(run, step, {
    status: url.one("of"),
    cursor: (step.map?.width ?? 0) > MOST_CELLS ? url.one("page") : null,
  });
  const asked = url.one("item");
  const index = asked === null ? null : Number(asked);
  const item = items.find((one) => one.index === index) ?? (index === null ? worstItem(items) : null);
  return (
    <>
      <div className={css.part}>
        <MapGrid
          run={run}
          step={step}
          chosen={index}
          onChoose={(one) => url.set({ step: step.step, item: String(one.index) })}
        />
      </div>
      {item !== null && (
        <div className={css.part}>
          <OneExecution id={item.executionId} index={item.index} />
        </div>
      )}
    </>
  );
}

function Single({ run, step }: { run: Run; step: Step }) {
  if (step.wait !== null && step.wait.kind === "approval") return <Approval run={run} step={step} />;
  if (step.isKept)
    return (
      <p className="d2">
        Kept: its result is that of{" "}
        {run.replayOf === null ? (
          "the earlier run"
        ) : (
          <Link href={`/runs/${run.replayOf}`} className="ln">
            the earlier run
          </Link>
        )}
        .
      </p>
    );
  if (step.workflow !== null && step.executionId !== null)
    return (
      <div className="col">
        <StateChip status={statusOf(step)}>{stateWord(step)}</StateChip>
        <p className="sm d2">
          A run of {step.workflow}
          {step.subRun !== null && `: ${step.subRun.endedCount} of ${step.subRun.stepCount} steps have ended`}.
        </p>
        <div className="row">
          <ButtonLink isSmall href={`/runs/${step.executionId}`}>
            Open the run
          </ButtonLink>
        </div>
      </div>
    );
  if (step.wait !== null) return <Waiting step={step} />;
  if (step.executionId !== null && step.job !== null) return <OneExecution id={step.executionId} index={null} />;
  return (
    <div className="col">
      <StateChip status={statusOf(step)}>{stateWord(step)}</StateChip>
      <p className="sm d2">
        {step.because ??
          (step.waitsFor.length === 0 ? "The run has not come to it." : `It waits for ${few(step.waitsFor)}.`)}
      </p>
    </div>
  );
}

function Waiting({ step }: { step: Step }) {
  const wait = step.wait;
  if (wait === null) return null;
  return (
    <div className="col">
      <StateChip status={statusOf(step)}>{stateWord(step)}</StateChip>
      <p className="sm d2">
        {wait.outcome ?? `Waits for ${wait.text}`}
        {wait.outcome === null && wait.until !== null && (
          <>
            , until <Time at={wait.until} />
          </>
        )}
      </p>
      {wait.outcome === null && wait.commands.map((command) => <CopyCommand key={command} command={command} />)}
    </div>
  );
}

function Definition({ run, step }: { run: Run; step: Step }) {
  const runs =
    step.job !== null ? (
      <Link href={`/jobs/${encodeURIComponent(run.app)}/${encodeURIComponent(step.job)}`} className="ln">
        {step.job}
      </Link>
    ) : (
      step.workflow
    );
  return (
    <div className={css.part}>
      <Facts
        of={{
          "runs job": step.job === null ? null : runs,
          "runs workflow": step.workflow,
          after: step.upstream.length === 0 ? "the start" : step.upstream.join(", "),
          before: step.downstream.length === 0 ? "the end" : step.downstream.join(", "),
          items: step.map === null ? null : String(step.map.width),
          "at once": step.map?.atOnce ?? null,
          "may fail": step.mayFail
            ? "yes: the run can still succeed"
            : step.map?.tolerate
              ? `${step.map.tolerate} items`
              : "no",
        }}
      />
    </div>
  );
}
