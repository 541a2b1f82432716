import { Panel } from "../../components/Panel";
import { useApi } from "../../hooks/useApi";
import { FindingList } from "../findings/FindingList";
import type { Finding } from "../findings/types";
import { useHeld } from "../findings/useHeld";
import type { Outlook } from "../queues/words";

// What needs attention in this queue, but for its pause, which the head says.
export function QueueFindings({ queue }: { queue: Outlook }) {
  const findings = useApi("/findings", {}, { live: ["pulse", "changes"], everyMs: 5000 });
  const own = (findings.data?.items ?? []).filter((finding) => isAbout(finding, queue));
  const { rows, hold } = useHeld(own, (finding) => finding.findingId);
  if (rows.length === 0) return null;
  return (
    <div {...hold}>
      <Panel title="Needs attention" isFlush>
        <FindingList rows={rows} />
      </Panel>
    </div>
  );
}

function isAbout({ kind, subject }: Finding, queue: Outlook): boolean {
  if (subject.kind === "queue") return subject.name === queue.name && kind !== "queue_paused";
  const holds = (name: string) => queue.jobs.some((share) => share.job === name && share.app === subject.app);
  return subject.kind === "job" && kind === "no_worker" && holds(subject.name);
}
