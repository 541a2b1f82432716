import { Link } from "wouter";
import { Facts } from "../../components/Facts";
import { Panel } from "../../components/Panel";
import { duration, plural } from "../../lib/format";
import { priorityWords } from "../execution/ExecutionFacts";
import css from "./Job.module.css";
import type { Job } from "./useRuns";

// Which worker takes it, and what happens if it fails or takes long.
export function Where({ job }: { job: Job }) {
  return (
    <Panel title="Where it runs and how">
      <div className={css.facts}>
        <Facts
          of={{
            queue: (
              <>
                <Link href={`/queues/${encodeURIComponent(job.queue)}`} className="ln">
                  {job.queue}
                </Link>
                , priority {priorityWords(job.priority)}
              </>
            ),
            worker: workerWords(job),
            runs: targetWords(job),
          }}
        />
        <Facts
          of={{
            retry: retryWords(job),
            timeout: job.timeout === 0 ? "none" : `${duration(job.timeout)} per attempt`,
            "start within": job.startWithin === null ? null : duration(job.startWithin),
            breakers: job.breakers.length === 0 ? null : job.breakers.join(", "),
            "pauses after": job.pauseAfter === null ? null : plural(job.pauseAfter, "failure"),
          }}
        />
      </div>
    </Panel>
  );
}

function workerWords(job: Job): string {
  const needs = [
    ...job.requires.map((tag) => `tag ${tag}`),
    ...Object.entries(job.resources).map(([name, amount]) => `${name} ${amount}`),
  ];
  return [`pool ${job.pool}`, ...needs].join(", ");
}

function targetWords(job: Job): string {
  if (job.command !== null) return Array.isArray(job.command) ? job.command.join(" ") : job.command;
  if (job.http !== null) return `${job.http.method ?? "GET"} ${job.http.url}`;
  return `the function ${job.function?.name ?? job.name} of ${job.app}`;
}

function retryWords(job: Job): string {
  const policy = job.retry as { attempts?: number; policy?: string } | null;
  const attempts = policy?.attempts ?? (job.retries === null ? null : job.retries + 1);
  if (attempts === null) return "as usual";
  return attempts === 1
    ? "none: one attempt"
    : `${plural(attempts, "attempt")}${policy?.policy ? `, ${policy.policy}` : ""}`;
}
