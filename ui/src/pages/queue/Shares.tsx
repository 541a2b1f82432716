import { Link } from "wouter";
import { Bar } from "../../components/Bar";
import { Panel } from "../../components/Panel";
import { count } from "../../lib/format";
import type { Outlook } from "../queues/words";
import css from "./Shares.module.css";

// How much of what waits and runs is of each job.
export function Shares({ queue }: { queue: Outlook }) {
  const total = queue.jobs.reduce((sum, share) => sum + share.queued + share.running, 0);
  return (
    <Panel title="By job" note="queued and running">
      {queue.jobs.length === 0 ? (
        <span className="d2">Nothing is queued, and nothing runs.</span>
      ) : (
        <ul className={css.shares}>
          {queue.jobs.map(({ app, job, queued, running }) => (
            <li key={`${app} ${job}`}>
              <Link href={`/jobs/${encodeURIComponent(app)}/${encodeURIComponent(job)}`} className="el ln" title={job}>
                {job}
              </Link>
              <Bar
                parts={[
                  { share: running / total, colour: "running" },
                  { share: queued / total, colour: "rest" },
                ]}
                label={`${count(queued)} queued, ${count(running)} running`}
                width="100%"
              />
              <span className="num sm">
                {count(queued)} <span className="d3">+ {count(running)}</span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
