import { Link } from "wouter";
import type { Answer } from "../../api/types";
import { Facts, Tag } from "../../components/Facts";
import { Id } from "../../components/Id";
import { Panel } from "../../components/Panel";
import { Duration, Time } from "../../components/Time";
import { duration } from "../../lib/format";
import type { Execution } from "./attempt";

type Job = Answer<"/jobs/{job}">;

interface Props {
  execution: Execution;
  job: Job | undefined;
  // How many attempts have started. One that was cancelled or given back is not in the count of the execution.
  started: number;
}

export function ExecutionFacts({ execution, job, started }: Props) {
  const { app, queue } = execution;
  return (
    <Panel title="Execution">
      <Facts
        of={{
          id: <Id id={execution.executionId} isWhole hasCopy />,
          job: (
            <>
              <Link href={`/jobs/${app}/${execution.job}`} className="ln">
                {execution.job}
              </Link>
              , version {execution.version}
            </>
          ),
          app,
          queue: (
            <>
              <Link href={`/queues/${encodeURIComponent(queue)}`} className="ln">
                {queue}
              </Link>
              , priority {priorityWords(execution.priority)}
            </>
          ),
          created: (
            <>
              <Time at={execution.createdAt} />
              {execution.actor ? ` by ${execution.actor}` : ""}
            </>
          ),
          "runs at": isLater(execution) ? <Time at={execution.runAt} /> : null,
          "start by": execution.startBy === null ? null : <Time at={execution.startBy} />,
          worker:
            execution.worker === null ? null : (
              <Link href={`/workers/${encodeURIComponent(execution.worker)}`} className="ln">
                {execution.worker}
              </Link>
            ),
          ended:
            execution.completedAt === null ? null : (
              <>
                <Time at={execution.completedAt} />, <Duration from={execution.createdAt} to={execution.completedAt} />{" "}
                after it was created
              </>
            ),
          attempts: attemptWords(execution, job, started),
          timeouts: timeoutWords(execution, job),
          schedule: execution.schedule,
          tick: execution.tick === null ? null : <Time at={execution.tick} />,
          event:
            execution.event === null ? null : (
              <Link href={`/events/${execution.event.eventId}`} className="ln">
                {execution.event.name}
              </Link>
            ),
          key: execution.key === null ? null : <span className="mono">{execution.key}</span>,
          tags: execution.tags?.length ? <Tags tags={execution.tags} /> : null,
        }}
      />
    </Panel>
  );
}

function isLater(execution: Execution): boolean {
  return Date.parse(execution.runAt) - Date.parse(execution.createdAt) > 1000;
}

function Tags({ tags }: { tags: readonly string[] }) {
  return (
    <span className="row wrap" style={{ gap: 4 }}>
      {tags.map((tag) => (
        <Tag key={tag}>{tag}</Tag>
      ))}
    </span>
  );
}

export function priorityWords(priority: number): string {
  const names: Record<number, string> = { 10: "high", 0: "normal", [-10]: "low" };
  return names[priority] ?? String(priority);
}

interface Policy {
  attempts?: number;
  policy?: string;
  delay?: number;
  base?: number;
}

function policyOf(execution: Execution, job: Job | undefined): Policy | null {
  return (execution.retry as Policy | null) ?? (job?.retry as Policy | null | undefined) ?? null;
}

function attemptWords(execution: Execution, job: Job | undefined, started: number): string {
  const most = policyOf(execution, job)?.attempts;
  const none = execution.completedAt === null ? "none yet" : "none";
  const number = execution.attemptCount === 0 ? started : execution.attemptCount;
  const so = number === 0 ? none : String(number);
  return most === undefined ? so : `${so}, up to ${most}`;
}

// "Exponential, base 10 s"
export function policyWords(execution: Execution, job: Job | undefined): string | null {
  const found = policyOf(execution, job);
  if (found?.policy === undefined) return null;
  if (found.attempts === 1) return "No retries";
  const name = found.policy.charAt(0).toUpperCase() + found.policy.slice(1);
  if (found.base !== undefined) return `${name}, base ${duration(found.base)}`;
  return found.delay === undefined ? name : `${name}, ${duration(found.delay)} apart`;
}

function timeoutWords(execution: Execution, job: Job | undefined): string | null {
  const each = execution.timeout ?? (job?.timeout as number | null | undefined) ?? null;
  const all = (job?.totalTimeout as number | null | undefined) ?? null;
  if (job === undefined && each === null) return null;
  const words = [each ? `${duration(each)} per attempt` : null, all ? `${duration(all)} in all` : null];
  const found = words.filter((one) => one !== null);
  return found.length === 0 ? "none" : found.join(", ");
}
