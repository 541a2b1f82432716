import { Page } from "../app/Page";
import type { PageProps } from "../app/routes";
import { Id } from "../components/Id";
import { Json } from "../components/Json";
import { Panel } from "../components/Panel";
import { Loaded } from "../components/States";
import { useApi } from "../hooks/useApi";
import { useIsPhone } from "../hooks/useMedia";
import { useNow } from "../hooks/useNow";
import { useUrlState } from "../hooks/useUrlState";
import { shortId } from "../lib/format";
import { Around } from "./run/Around";
import { GraphPanel } from "./run/GraphPanel";
import { criticalPath, type Forecast, holderOf, isBad, type Run, type Step } from "./run/model";
import css from "./run/Run.module.css";
import { RunActions } from "./run/RunActions";
import { RunHead } from "./run/RunHead";
import { StepPanel } from "./run/StepPanel";
import { Timeline } from "./run/Timeline";
import { useItems, worstItem } from "./run/useItems";
import { plain, verdictOf } from "./run/words";

const UP = { label: "Runs", href: "/runs" };

export default function RunPage({ params }: PageProps) {
  const id = params.run ?? "";
  const path = { run: id };
  const live = { live: [`runs:${id}`, "pulse"] as const, everyMs: 1000, keep: false };
  const run = useApi("/runs/{run}", { path }, live);
  const steps = useApi("/runs/{run}/steps", { path, query: { limit: 1000 } }, live);
  const forecast = useApi("/runs/{run}/forecast", { path }, { ...live, everyMs: 5000 });
  const both = {
    ...run,
    data: run.data && steps.data ? { run: run.data, steps: steps.data.items } : undefined,
    error: run.error ?? steps.error,
  };
  if (both.data === undefined)
    return (
      <Page title={shortId(id)} up={UP}>
        <Loaded what="The run" query={both}>
          {() => null}
        </Loaded>
      </Page>
    );
  return <Shown key={id} run={both.data.run} steps={both.data.steps} forecast={forecast.data} />;
}

interface ShownProps {
  run: Run;
  steps: readonly Step[];
  forecast: Forecast | undefined;
}

function Shown({ run, steps, forecast }: ShownProps) {
  const url = useUrlState();
  const now = useNow();
  const isPhone = useIsPhone();
  const holder = run.completedAt === null ? holderOf(steps, forecast) : null;
  const held = useItems(run, holder?.map == null ? null : holder);
  const item = worstItem(held.items);
  const critical = criticalPath(run, steps, forecast);
  const asked = url.one("step");
  const selected = steps.find((step) => step.step === asked) ?? holder ?? steps.find(isBad) ?? steps.at(-1) ?? null;
  const verdict = verdictOf(run, steps, holder, item && { ...item, attempt: item.attemptCount }, now);
  const select = (step: string, index: number | null = null) =>
    url.set({ step, item: index === null ? null : String(index), of: null, page: null });
  return (
    <Page
      title={
        <span className="row" style={{ gap: 6 }}>
          <span className="el">{run.workflow}</span>
          <span className="nw not-phone" style={{ fontWeight: 400 }}>
            <Id id={run.runId} />
          </span>
        </span>
      }
      up={UP}
      context={<Around run={run} />}
      verdict={`${run.workflow}: ${plain({ ...verdict, lead: run.completedAt === null ? "" : verdict.lead })}`}
      phoneActions={isPhone ? <RunActions run={run} steps={steps} /> : undefined}
    >
      <div className="stack">
        <RunHead run={run} steps={steps} forecast={forecast} verdict={verdict} now={now} />
        <div className={css.columns}>
          <GraphPanel
            steps={steps}
            forecast={forecast}
            critical={critical}
            holder={holder}
            selected={selected?.step ?? null}
            onSelect={select}
          />
          {selected !== null && <StepPanel key={selected.step} run={run} step={selected} />}
        </div>
        <Timeline
          run={run}
          steps={steps}
          forecast={forecast}
          critical={critical}
          selected={selected}
          onSelect={select}
        />
        {run.status === "success" && run.result !== null && (
          <Panel title="Result">
            <Json value={run.result} label="the result" />
          </Panel>
        )}
      </div>
    </Page>
  );
}
