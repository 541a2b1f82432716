import { Link } from "wouter";
import type { Answer } from "../../api/types";
import { Bars } from "../../components/Bars";
import { Panel } from "../../components/Panel";
import { Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { count } from "../../lib/format";
import { Compare } from "./Compare";

type Group = NonNullable<Answer<"/executions/{execution}/similar">["group"]>;

// How many dead letters have the same error, since when, and which version introduced it.
export function Like({ id }: { id: string }) {
  const found = useApi(
    "/executions/{execution}/similar",
    { path: { execution: id } },
    { live: ["pulse"], everyMs: 10_000, keep: false },
  );
  const { data } = found;
  if (data === undefined || data.group === null || data.more === 0) return null;
  const { group } = data;
  return (
    <Panel
      title={`${count(data.more)} more like it`}
      right={
        <Link href={`/dead?group=${data.fingerprint}`} className="sm ln d2">
          Open the group
        </Link>
      }
    >
      <div className="col" style={{ gap: 6 }}>
        {group.trend !== null && <Trend group={group} />}
        <p className="sm d2">
          <Versions group={group} />
        </p>
      </div>
    </Panel>
  );
}

function Trend({ group }: { group: Group }) {
  const points = group.trend?.points ?? [];
  const stacks = points.map((value, index) => ({ key: index, parts: [{ value, colour: "failed" }] }));
  return (
    <div>
      <Bars stacks={stacks} height={30} label={`${group.count} dead letters since the first`} />
      <div className="row xs d3">
        <span className="gr">
          first <Time at={group.firstAt} />
        </span>
        <span>now</span>
      </div>
    </div>
  );
}

// "Version 13 of charge had none. Its last success: 02:45:50. Compare 13 with 14".
export function Versions({ group }: { group: Group }) {
  const job = group.jobs[0];
  if (group.without === null || group.firstVersion === null || job === undefined)
    return (
      <>
        First seen at <Time at={group.firstAt} />
        {group.lastSuccessAt !== null && (
          <>
            ; last success before: <Time at={group.lastSuccessAt} />
          </>
        )}
        .
      </>
    );
  const all = group.versions.length === 1;
  return (
    <>
      <b>
        {all ? "All in" : "Since"} version {group.firstVersion}
      </b>
      {group.versions[0]?.registeredAt ? (
        <>
          , registered <Time at={group.versions[0].registeredAt} />
        </>
      ) : null}
      ; version {group.without.version} had none.{" "}
      {group.lastSuccessAt !== null && (
        <>
          Last success before:{" "}
          <Link href={`/executions/${group.lastSuccessId}`} className="ln">
            <Time at={group.lastSuccessAt} />
          </Link>
          .{" "}
        </>
      )}
      <Compare app={job.app} job={job.job} from={group.without.version} to={group.firstVersion} />
    </>
  );
}
