import { useLocation } from "wouter";
import { Panel } from "../../components/Panel";
import { Empty, Loaded } from "../../components/States";
import { useApi } from "../../hooks/useApi";
import { useIsPhone } from "../../hooks/useMedia";
import { markOf } from "../../lib/states";
import { LazyGraph, useFit } from "../graph/LazyGraph";
import type { GraphEdge } from "../graph/types";
import { addressOf, type JobRow, upstreamOf, whenWords } from "../jobs/words";
import css from "./Job.module.css";
import type { Job } from "./useRuns";

// Which jobs start this one by their ends, and which it starts, near and far.
export function DependsOn({ job }: { job: Job }) {
  const fields = "jobId,name,app,status,state,dependencies,schedules,on,lastExecution";
  const all = useApi(
    "/jobs",
    { query: { app: [job.app], limit: 1000, fields } },
    { live: ["pulse", "changes"], everyMs: 3000 },
  );
  const fit = useFit();
  const jobs = (all.data?.items ?? []) as JobRow[];
  const isAlone = related(job.name, edgesOf(jobs)).size === 1;
  return (
    <Panel
      title="Depends on"
      note="from left to right: the end of one starts the next"
      right={isAlone ? undefined : fit.button}
      isFlush
    >
      <Loaded what="Dependencies" query={all}>
        {({ items }) => <Drawn job={job} jobs={items as JobRow[]} fits={fit.fits} />}
      </Loaded>
    </Panel>
  );
}

function Drawn({ job, jobs, fits }: { job: Job; jobs: readonly JobRow[]; fits: number }) {
  const [, go] = useLocation();
  const isPhone = useIsPhone();
  const edges = edgesOf(jobs);
  const near = related(job.name, edges);
  const events = (job.on as { event?: string[] } | null)?.event ?? [];
  if (near.size === 1)
    return (
      <Empty title="It depends on no other job">
        <span>
          {events.length > 0 ? `Events start it: ${events.join(", ")}. ` : ""}
          Name jobs under “dependencies” in its definition, and their ends start it.
        </span>
      </Empty>
    );
  const shown = jobs.filter((one) => near.has(one.name));
  const open = (name: string) => go(`${addressOf({ app: job.app, name })}?tab=depends`);
  if (isPhone)
    return (
      <ul className={css.list}>
        {shown.map((one) => (
          <li key={one.name}>
            <a href={`${addressOf(one)}?tab=depends`}>
              <b>{one.name}</b> <span className="d3">{whenWords(one) || "when asked"}</span>
            </a>
          </li>
        ))}
      </ul>
    );
  return (
    <LazyGraph
      label={`Jobs around ${job.name}`}
      nodes={shown.map((one) => ({
        id: one.name,
        title: one.name,
        detail:
          one.lastExecution === null
            ? "no run yet"
            : whenWords({ ...one, dependencies: [] }) || markOf(one.status).word.toLowerCase(),
        status: one.lastExecution === null ? "waiting" : one.status,
        isDashed: one.lastExecution === null,
        word: markOf(one.status).word,
      }))}
      edges={edges
        .filter((edge) => near.has(edge.from) && near.has(edge.to))
        .map(
          ({ from, to, on }): GraphEdge => ({
            from,
            to,
            label: on === "success" ? undefined : `on ${on}`,
            isDashed: on !== "success",
          }),
        )}
      selected={job.name}
      onSelect={open}
      height={Math.min(520, Math.max(240, shown.length * 60))}
      fits={fits}
    />
  );
}

function edgesOf(jobs: readonly JobRow[]) {
  const names = new Map(jobs.map((one) => [one.jobId, one.name]));
  return jobs.flatMap((one) =>
    one.dependencies.map(upstreamOf).map(({ job: from, on }) => ({ from: names.get(from) ?? from, to: one.name, on })),
  );
}

// All that can be reached by edges in one direction: what starts it, and what it starts.
function related(name: string, edges: readonly { from: string; to: string }[]): Set<string> {
  const walk = (next: (at: string) => string[]) => {
    const found = new Set([name]);
    const open = [name];
    for (let at = open.pop(); at !== undefined; at = open.pop())
      for (const one of next(at))
        if (!found.has(one)) {
          found.add(one);
          open.push(one);
        }
    return found;
  };
  const up = walk((at) => edges.filter((edge) => edge.to === at).map((edge) => edge.from));
  const down = walk((at) => edges.filter((edge) => edge.from === at).map((edge) => edge.to));
  return new Set([...up, ...down]);
}
