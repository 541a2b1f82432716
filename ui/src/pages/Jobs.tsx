import { Page } from "../app/Page";
import { ButtonLink } from "../components/Button";
import { CopyCommand } from "../components/CopyCommand";
import { FilterTokens } from "../components/FilterTokens";
import { Pager } from "../components/Pager";
import { Panel } from "../components/Panel";
import { Empty, Loaded } from "../components/States";
import { Verdict } from "../components/Verdict";
import { useApi } from "../hooks/useApi";
import { useUrlState } from "../hooks/useUrlState";
import { count, plural } from "../lib/format";
import { JobTable } from "./jobs/JobTable";
import type { JobRow } from "./jobs/words";

const PAGE = 100;
const FIELDS =
  "jobId,status,startedAt,progress,name,app,state,origin,version,paused,schedules,nextAt,lastExecution,lastOutcomes,on,dependencies";
const FILTERS = [
  { name: "name" },
  { name: "app" },
  { name: "queue" },
  { name: "tag" },
  { name: "state", options: ["active", "paused", "deleted"] },
  { name: "origin", options: ["code", "api", "file"] },
] as const;

export default function Jobs() {
  const url = useUrlState();
  const values = Object.fromEntries(FILTERS.map(({ name }) => [name, url.all(name)]));
  const cursor = url.one("cursor");
  const query = { ...narrowed(values), limit: PAGE, fields: FIELDS, ...(cursor === null ? {} : { cursor }) };
  const jobs = useApi("/jobs", { query }, { live: ["pulse", "changes"], everyMs: 2000 });
  const rows = (jobs.data?.items ?? []) as JobRow[];
  const isNarrowed = Object.values(values).some((given) => given.length > 0);
  const turn = (to: string | null | undefined) => (to ? () => url.set({ cursor: to }) : undefined);
  const isPart = jobs.data !== undefined && (jobs.data.nextCursor !== null || cursor !== null);
  const verdict = jobs.data && verdictOf(rows, isPart, isNarrowed);
  return (
    <Page title="Jobs" verdict={verdict}>
      <div className="stack">
        {verdict && <Verdict text={verdict} support={rows.length > 0 ? supportOf(rows) : undefined} />}
        {(jobs.data === undefined || rows.length > 0 || isNarrowed) && (
          <FilterTokens
            filters={FILTERS}
            values={values}
            onChange={(name, given) => url.set({ [name]: name === "name" ? given.slice(-1) : given, cursor: null })}
          />
        )}
        <Panel isFlush>
          <Loaded what="Jobs" query={jobs} rows={6}>
            {(data) => (
              <>
                {rows.length === 0 ? <Nothing isNarrowed={isNarrowed} /> : <JobTable rows={rows} />}
                {(data.previousCursor !== null || data.nextCursor !== null) && (
                  <Pager newer={turn(data.previousCursor)} older={turn(data.nextCursor)}>
                    {count(rows.length)} shown, by name
                  </Pager>
                )}
              </>
            )}
          </Loaded>
        </Panel>
      </div>
    </Page>
  );
}

function narrowed(values: Record<string, string[]>): Record<string, string | string[]> {
  const given = Object.entries(values).filter(([, list]) => list.length > 0);
  return Object.fromEntries(given.map(([name, list]) => [name, name === "name" ? (list[0] ?? "") : list]));
}

function Nothing({ isNarrowed }: { isNarrowed: boolean }) {
  if (isNarrowed)
    return <Empty title="Drop a filter to see more" actions={<ButtonLink href="/jobs">Show all jobs</ButtonLink>} />;
  return (
    <Empty title="Start a worker of your app">
      <span>
        A job is a named definition: a function, a command or a request. Those of an app appear when its worker starts.
      </span>
      <CopyCommand command="rota worker MODULE:APP" />
    </Empty>
  );
}

function verdictOf(jobs: readonly JobRow[], isPart: boolean, isNarrowed: boolean): string {
  const failing = jobs.filter((job) => job.status === "failed").length;
  const number = isPart ? `${count(jobs.length)} of the jobs` : plural(jobs.length, "job");
  if (jobs.length === 0) return isNarrowed ? "No job matches" : "No job yet";
  return failing === 0 ? `${number}, none failed last` : `${number}, ${failing} failed last`;
}

function supportOf(jobs: readonly JobRow[]): string {
  const running = jobs.filter((job) => job.status === "running").length;
  const paused = jobs.filter((job) => job.state === "paused").length;
  const planned = jobs.filter((job) => job.nextAt !== null).length;
  return `${running} running · ${paused === 0 ? "none" : paused} paused · ${planned} with a next run`;
}
