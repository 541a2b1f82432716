import { Link } from "wouter";
import { Bar } from "../../components/Bar";
import { CopyButton } from "../../components/CopyButton";
import { Tag } from "../../components/Facts";
import { Id } from "../../components/Id";
import { Callout } from "../../components/Panel";
import { MarkChip, StateChip } from "../../components/StateChip";
import { useIsPhone } from "../../hooks/useMedia";
import { useZone } from "../../hooks/useZone";
import { count, duration } from "../../lib/format";
import { markOf } from "../../lib/states";
import { clockTime, dayOf, shortTime } from "../../lib/zone";
import { type Forecast, isOpen, type Run, type Step } from "./model";
import css from "./Run.module.css";
import { RunActions } from "./RunActions";
import { argumentWords, type Sentence } from "./words";

interface Props {
  run: Run;
  steps: readonly Step[];
  forecast: Forecast | undefined;
  verdict: Sentence;
  now: number;
}

export function RunHead({ run, steps, forecast, verdict, now }: Props) {
  const isPaused = run.paused !== null && run.completedAt === null;
  const words = argumentWords(run);
  const isPhone = useIsPhone();
  return (
    <Callout colour={isPaused ? "warn" : markOf(run.status).colour}>
      <div className="row top wrap">
        <div className="gr row wrap" style={{ rowGap: 4 }}>
          {isPaused ? (
            <MarkChip icon="pause" colour="warn" isHead>
              Paused
            </MarkChip>
          ) : (
            <StateChip status={run.status} isHead />
          )}
          <span className={css.name}>{run.workflow}</span>
          {words !== "" && (
            <span className="d2 el" title={words} style={{ maxWidth: 360 }}>
              {words}
            </span>
          )}
          <span className="row nw" style={{ gap: 8 }}>
            <Id id={run.runId} />
            <CopyButton text={run.runId} label="Copy the id" />
          </span>
          <Tag>version {run.version}</Tag>
        </div>
        {!isPhone && <RunActions run={run} steps={steps} />}
      </div>
      <div className="row wrap" style={{ paddingTop: 6 }}>
        <span className="gr" style={{ minWidth: 240, overflowWrap: "anywhere" }}>
          {verdict.lead} <b>{verdict.subject}</b> {verdict.rest} <Related run={run} />
        </span>
        <Progress run={run} steps={steps} forecast={forecast} now={now} />
      </div>
    </Callout>
  );
}

function Related({ run }: { run: Run }) {
  return (
    <>
      {run.retriedAs !== null && (
        <Link href={`/runs/${run.retriedAs}`} className="ln">
          Retried as a new run
        </Link>
      )}{" "}
      {run.replayOf !== null && (
        <Link href={`/runs/${run.replayOf}`} className="ln d2">
          Retries an earlier run
        </Link>
      )}{" "}
      {run.parentRunId !== null && (
        <Link href={`/runs/${run.parentRunId}?step=${encodeURIComponent(run.parentStep ?? "")}`} className="ln d2">
          A step of another run
        </Link>
      )}{" "}
      {run.undoRunId !== null && (
        <Link href={`/runs/${run.undoRunId}`} className="ln d2">
          Its undo
        </Link>
      )}
    </>
  );
}

function Progress({ run, steps, forecast, now }: Omit<Props, "verdict">) {
  const { zone } = useZone();
  const total = Math.max(1, run.stepCount);
  const failed = steps.filter((step) => step.status === "failed").length;
  const open = steps.filter(isOpen).length;
  const text = `${count(run.endedCount)} of ${count(run.stepCount)} steps`;
  const at = forecast?.endsAt ?? null;
  return (
    <span className="row">
      <span className="sm d2 nw">{text}</span>
      <span className={css.progress}>
        <Bar
          label={text}
          width="100%"
          parts={[
            { share: Math.max(0, run.endedCount - failed) / total, colour: "success" },
            { share: failed / total, colour: "failed" },
            { share: run.completedAt === null ? open / total : 0, colour: "running" },
          ]}
        />
      </span>
      {run.completedAt === null && at !== null && (
        <span className="sm d2 nw">ends about {endWords(at, now, zone)}</span>
      )}
      {run.completedAt !== null && forecast?.usualS != null && (
        <span className="sm d2 nw">usually {duration(forecast.usualS)}</span>
      )}
    </span>
  );
}

function endWords(at: string, now: number, zone: "local" | "UTC"): string {
  const moment = new Date(at);
  const isToday = dayOf(moment, zone) === dayOf(new Date(now), zone);
  return isToday ? clockTime(moment, zone) : shortTime(moment, zone, new Date(now));
}
