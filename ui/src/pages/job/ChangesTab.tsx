import type { Item } from "../../api/types";
import { DataTable } from "../../components/DataTable";
import { Panel } from "../../components/Panel";
import { Empty, Loaded } from "../../components/States";
import { Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import type { Job } from "./useRuns";

type Change = Item<"/changes">;

// Versions, pauses and settings of this job, newest first.
export function ChangesTab({ job }: { job: Job }) {
  const query = { from: "90d", limit: 1000, kind: ["version", "pause", "resume", "setting"] as Change["kind"][] };
  const list = useApi("/changes", { query }, { live: ["changes"] });
  return (
    <Panel title="Changes" note="of the last 90 days" isFlush>
      <Loaded what="Changes" query={list}>
        {({ items }) => {
          const mine = items.filter((one) => isOf(one, job));
          if (mine.length === 0)
            return (
              <Empty title="No change in 90 days">
                <span>New versions, pauses and resumes appear here, with who made them.</span>
              </Empty>
            );
          return <Table changes={mine} />;
        }}
      </Loaded>
    </Panel>
  );
}

function Table({ changes }: { changes: readonly Change[] }) {
  return (
    <DataTable
      caption="Changes of the job, newest first"
      columns={[
        { key: "at", head: "when", cell: (one) => <Time at={one.at} />, width: 130 },
        { key: "what", head: "what", cell: (one) => one.text },
        { key: "who", head: "who", cell: (one) => one.actor ?? <span className="d3">—</span>, width: 160 },
        { key: "note", head: "note", cell: (one) => one.note ?? "", width: "30%" },
      ]}
      rows={changes}
      rowKey={(one) => one.changeId ?? ""}
      phone={(one) => (
        <div className="col" style={{ gap: 2 }}>
          <span>{one.text}</span>
          <span className="sm d2">
            <Time at={one.at} /> {one.actor} {one.note}
          </span>
        </div>
      )}
    />
  );
}

function isOf(one: Change, job: Job): boolean {
  return one.subject?.kind === "job" && one.subject.name === job.name && (one.subject.app ?? job.app) === job.app;
}
