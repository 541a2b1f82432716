import { Link } from "wouter";
import type { Answer } from "../../api/types";
import { ButtonLink } from "../../components/Button";
import { Id } from "../../components/Id";
import { StateChip } from "../../components/StateChip";
import { Loading } from "../../components/States";
import { Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { argumentsInLine, count } from "../../lib/format";
import { Versions } from "../execution/Like";
import { addressOf, type ExecutionFilter } from "../executions/filter";
import { attemptsOf } from "../executions/words";
import { RollBackDeploy } from "../findings/RollBackDeploy";
import css from "./Dead.module.css";
import { type ErrorDetail, type ErrorGroup, listAddress } from "./group";

const SHOWN = 5;
const FIELDS = "executionId,status,arguments,attemptCount,maxAttempts,completedAt";

// Which version introduced the error, whether it still happens, and the newest letters of the group.
export function Members({ group, filter }: { group: ErrorGroup; filter: ExecutionFilter }) {
  const list = useApi(
    "/executions",
    { query: { ...filter, limit: SHOWN, fields: FIELDS } },
    { live: ["pulse"], everyMs: 5000, keep: false },
  );
  const items = list.data?.items ?? [];
  const search = listAddress(filter).split("?")[1] ?? "";
  return (
    <>
      {group.fingerprint !== null && <Finding fingerprint={group.fingerprint} />}
      {list.data === undefined && <Loading rows={3} />}
      {items.map((row) => (
        <div key={row.executionId} className={css.member}>
          <StateChip status={row.status ?? ""} />
          <Link href={addressOf(row.executionId ?? "", search)} className="mono d2 el">
            {argumentsInLine(row.arguments as Record<string, unknown> | null)}
          </Link>
          <span className="num d2">{attemptsOf(row)}</span>
          <span className="num d2">
            <Time at={row.completedAt} />
          </span>
          <Id id={row.executionId ?? ""} />
          <Link href={addressOf(row.executionId ?? "", search)} className="sm ln num">
            Open
          </Link>
        </div>
      ))}
      <div className={css.foot}>
        <span className="d3">
          {count(items.length)} of {count(group.count)}
          {group.isCapped ? "+" : ""} shown.
        </span>{" "}
        <Link href={listAddress(filter)} className="ln">
          Show all in Executions
        </Link>
      </div>
    </>
  );
}

function Finding({ fingerprint }: { fingerprint: string }) {
  const found = useApi(
    "/errors/{fingerprint}",
    { path: { fingerprint } },
    { live: ["pulse"], everyMs: 5000, keep: false },
  );
  const data = found.data as Answer<"/errors/{fingerprint}"> | undefined;
  if (data === undefined) return null;
  return (
    <>
      <div className={css.finding}>
        <span className="gr">
          <Versions group={data} />
        </span>
        <span className="d3">
          {data.lastMinute > 0
            ? `Still failing: ${count(data.lastMinute)} in the last minute. Replay after the cause is gone.`
            : "None in the last minute."}
        </span>
      </div>
      <RollBack error={data} />
    </>
  );
}

// The version in force has the error: the way back to the one before.
function RollBack({ error }: { error: ErrorDetail }) {
  const [job] = error.jobs;
  const { rollBack: way } = error;
  if (way === null || job === undefined) return null;
  const inForce = `Version ${way.version}, which has this error, is in force.`;
  if (!way.isCode)
    return (
      <div className={css.finding}>
        <span className="gr">{inForce}</span>
        <ButtonLink isSmall href={`/jobs/${job.app}/${job.job}?version=${way.version}&against=${way.to}`}>
          Roll back…
        </ButtonLink>
      </div>
    );
  return (
    <div className={css.finding}>
      <span className="gr">{inForce}</span>
      <RollBackDeploy app={job.app} deploy={way.deploy} />
    </div>
  );
}
