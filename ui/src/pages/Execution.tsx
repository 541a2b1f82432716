import { Redirect } from "wouter";
import { Page } from "../app/Page";
import type { PageProps } from "../app/routes";
import { ButtonLink } from "../components/Button";
import { Id } from "../components/Id";
import { LeftHistory } from "../components/LeftHistory";
import { Empty, Loaded } from "../components/States";
import { useApi } from "../hooks/useApi";
import { useKeys } from "../hooks/useKeys";
import { useUrlState } from "../hooks/useUrlState";
import { shortId } from "../lib/format";
import { hasEnded, markOf } from "../lib/states";
import { attemptsOf, type Execution as Data } from "./execution/attempt";
import { Head } from "./execution/Head";
import { Neighbours } from "./execution/Neighbours";
import { Parts } from "./execution/Parts";
import { Sentence } from "./execution/Sentence";
import { useActions } from "./execution/useActions";

const KEPT = 10;
// The stream refuses to watch what is no id.
const IS_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export default function Execution({ params }: PageProps) {
  const id = params.execution ?? "";
  const url = useUrlState();
  const found = useApi(
    "/executions/{execution}",
    { path: { execution: id } },
    { live: IS_ID.test(id) ? [`executions:${id}`] : [], keep: false },
  );
  const list = url.one("list");
  const up = { label: "Executions", href: list === null || list === "all" ? "/executions" : `/executions?${list}` };
  const search = useApi("/search", { query: { q: id } }, { enabled: !IS_ID.test(id), keep: false });
  const starting = search.data?.items.filter(({ kind }) => kind === "execution") ?? [];
  if (starting.length === 1) return <Redirect to={`/executions/${starting[0]?.id}`} replace />;
  if (found.data !== undefined) return <Shown key={found.data.executionId} execution={found.data} up={up} />;
  return (
    <Page
      title={<Id id={id} />}
      up={up}
      verdict={found.error?.status === 404 ? `No execution ${shortId(id)}` : undefined}
    >
      {found.error?.status === 404 ? (
        <Empty
          title={IS_ID.test(id) ? `There is no execution ${shortId(id)}` : `No execution starts with ${id}`}
          actions={<ButtonLink href="/executions">All executions</ButtonLink>}
        >
          <LeftHistory />
        </Empty>
      ) : (
        <Loaded what="The execution" query={found}>
          {() => null}
        </Loaded>
      )}
    </Page>
  );
}

interface ShownProps {
  execution: Data;
  up: { label: string; href: string };
}

function Shown({ execution, up }: ShownProps) {
  const id = execution.executionId;
  const path = { execution: id };
  const url = useUrlState();
  const isEnded = hasEnded(execution.status);
  const live = [`executions:${id}` as const];
  const isFailed = execution.status === "failed";
  const dead = useApi(
    "/executions",
    { query: { id: [id], dead: true, fields: "executionId" } },
    { enabled: isFailed, live, keep: false },
  );
  const all = useApi(
    "/executions/{execution}/attempts",
    { path, query: { limit: 200, order: "asc" } },
    { enabled: execution.fence > KEPT, live, keep: false },
  );
  const forecast = useApi(
    "/executions/{execution}/forecast",
    { path },
    { enabled: !isEnded, live: [...live, "pulse"], everyMs: 5000, keep: false },
  );
  const job = useApi(
    "/jobs/{job}",
    { path: { job: execution.jobId ?? execution.job } },
    { enabled: execution.jobId !== null, keep: false },
  );
  const attempts = attemptsOf(execution, (all.data?.items as Data["attempts"] | undefined) ?? execution.attempts);
  const fence = Number(url.one("attempt") ?? Number.NaN);
  const chosen = attempts.find((attempt) => attempt.fence === fence) ?? attempts.at(-1);
  const choose = (next: number) => url.set({ attempt: String(next) }, { replace: true });
  const isDead = isFailed && (dead.data?.items.length ?? 0) > 0;
  const actions = useActions(execution, isDead);
  useKeys(
    Object.fromEntries(
      attempts
        .slice(0, 9)
        .map((attempt, index) => [
          String(index + 1),
          { does: "choose an attempt", run: () => choose(attempt.fence), isHidden: index > 0 },
        ]),
    ),
  );
  return (
    <Page
      title={
        <span className="row" style={{ gap: 6 }}>
          <span className="el">{execution.job}</span>
          <span className="nw" style={{ fontWeight: 400 }}>
            <Id id={id} />
          </span>
        </span>
      }
      up={up}
      context={<Neighbours id={id} />}
      verdict={`${MARKS[execution.status] ?? ""}${execution.job} ${markOf(execution.status).word.toLowerCase()}`}
      phoneActions={actions.hasAny ? <div className="row wrap">{actions.buttons}</div> : undefined}
    >
      <Head execution={execution} isDead={isDead} actions={actions.buttons}>
        <Sentence execution={execution} isDead={isDead} forecast={forecast.data} />
      </Head>
      <Parts
        execution={execution}
        attempts={attempts}
        chosen={chosen}
        onChoose={choose}
        job={isEnded && job.data?.version !== execution.version ? undefined : job.data}
        forecast={forecast.data}
      />
      {actions.dialog}
    </Page>
  );
}

const MARKS: Record<string, string> = { failed: "✗ ", success: "✓ ", running: "▶ " };
