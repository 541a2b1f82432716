import { count } from "../../lib/format";
import type { Outlook } from "./words";

// The job with most of a queue, and how many others there are.
export function ShareBar({ queue }: { queue: Outlook }) {
  const [first, ...others] = queue.jobs;
  if (first === undefined) return <span className="d3">—</span>;
  const all = queue.jobs.map((share) => `${share.job}: ${count(share.queued)} queued, ${count(share.running)} running`);
  const total = queue.jobs.reduce((sum, share) => sum + share.queued + share.running, 0);
  const share = Math.round(((first.queued + first.running) / total) * 100);
  return (
    <span className="sm d2" title={all.join("\n")}>
      {others.length === 0 ? first.job : `${share} % ${first.job}, ${count(others.length)} more`}
    </span>
  );
}
