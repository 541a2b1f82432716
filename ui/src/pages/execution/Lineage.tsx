import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Answer } from "../../api/types";
import { Icon } from "../../components/Icon";
import { Id } from "../../components/Id";
import { Panel } from "../../components/Panel";
import { StateIcon } from "../../components/StateIcon";
import { Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { count } from "../../lib/format";
import { hasEnded, markOf } from "../../lib/states";
import type { Execution } from "./attempt";
import css from "./Lineage.module.css";

type Data = Answer<"/executions/{execution}/lineage">;
type Relative = Data["children"][number];

// Where it comes from, and what it has started: tick or caller, run, this, children, replays.
export function Lineage({ execution }: { execution: Execution }) {
  const id = execution.executionId;
  const found = useApi(
    "/executions/{execution}/lineage",
    { path: { execution: id } },
    { live: hasEnded(execution.status) ? [] : [`executions:${id}`], keep: false },
  );
  const data = found.data;
  if (data === undefined) return null;
  return (
    <Panel title="Lineage">
      <ol className={css.lineage}>
        <Entry icon={<Icon name={ORIGINS[data.origin.kind] ?? "person"} className="c-rest" />} title={originOf(data)}>
          at <Time at={data.origin.at} />
        </Entry>
        {data.run !== null && (
          <Entry
            icon={<StateIcon status={data.run.status} />}
            title={
              <Link
                href={`/runs/${data.run.runId}${data.run.step ? `?step=${encodeURIComponent(data.run.step)}` : ""}`}
                className="ln"
              >
                run of {data.run.workflow}
              </Link>
            }
          >
            {markOf(data.run.status).word.toLowerCase()}
          </Entry>
        )}
        {data.parent !== null && <Related of={data.parent} word="enqueued it" />}
        {data.replayOf !== null && <Related of={data.replayOf} word="of which it is a replay" />}
        {data.upstream.map((one) => (
          <Related key={one.executionId} of={one} word="it waited for" />
        ))}
        <Entry
          icon={<StateIcon status={execution.status} />}
          title={
            <>
              <b>{execution.job}</b>, this execution
            </>
          }
        >
          {execution.step === null ? "" : `step ${execution.step}, `}
          {markOf(execution.status).word.toLowerCase()}
        </Entry>
        {data.children.map((one) => (
          <Related key={one.executionId} of={one} word="which it enqueued" />
        ))}
        {data.childCount > data.children.length && (
          <Entry
            icon={<Icon name="dots" className="c-rest" />}
            title={<AllChildren id={id} number={data.childCount} />}
          />
        )}
        {data.replays.map((one) => (
          <Related key={one.executionId} of={one} word="replay of it" />
        ))}
        {execution.stepOf !== null && execution.stepOf.downstream.length > 0 && (
          <Entry
            icon={<Icon name="chevrons" className="c-rest" />}
            title={execution.stepOf.downstream.map((one) => one.step).join(", ")}
          >
            what its run does next
          </Entry>
        )}
      </ol>
    </Panel>
  );
}

const ORIGINS = { schedule: "calendar", event: "bolt", execution: "link", run: "graph" } as Record<
  string,
  "calendar" | "bolt" | "link" | "graph"
>;

function originOf({ origin }: Data): ReactNode {
  const name = origin.name ?? origin.actor ?? "a caller";
  if (origin.kind === "schedule")
    return (
      <>
        tick of{" "}
        <Link href={`/schedules?of=${encodeURIComponent(name)}`} className="ln">
          {name}
        </Link>
      </>
    );
  if (origin.kind === "event")
    return (
      <>
        event{" "}
        <Link href={`/events/${origin.id ?? ""}`} className="ln">
          {name}
        </Link>
      </>
    );
  if (origin.kind === "execution") return <>enqueued by an execution</>;
  if (origin.kind === "run") return <>placed by a run</>;
  return <>enqueued by {name}</>;
}

function Related({ of, word }: { of: Relative; word: string }) {
  return (
    <Entry
      icon={<StateIcon status={of.status} />}
      title={
        <>
          <Link href={`/executions/${of.executionId}`} className="ln">
            {of.job}
          </Link>{" "}
          <Id id={of.executionId} />
        </>
      }
    >
      {word}, {markOf(of.status).word.toLowerCase()}
    </Entry>
  );
}

function AllChildren({ id, number }: { id: string; number: number }) {
  return (
    <Link href={`/executions?parent=${id}&since=all`} className="ln">
      all {count(number)} that it enqueued
    </Link>
  );
}

function Entry({ icon, title, children }: { icon: ReactNode; title: ReactNode; children?: ReactNode }) {
  return (
    <li>
      <span className={css.icon}>{icon}</span>
      <div className="el">{title}</div>
      <div className="sm d3">{children}</div>
    </li>
  );
}
