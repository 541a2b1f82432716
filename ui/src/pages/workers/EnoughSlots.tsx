import { Link } from "wouter";
import type { Answer } from "../../api/types";
import { Count } from "../../components/Count";
import { type Column, DataTable } from "../../components/DataTable";
import { MarkChip } from "../../components/StateChip";
import { Empty } from "../../components/States";
import { Duration } from "../../components/Time";
import { rate } from "../../lib/format";

type Group = Answer<"/load">["groups"][number];

const COLUMNS: readonly Column<Group>[] = [
  {
    key: "group",
    head: "queue and pool",
    cell: (group) => (
      <Link href={`/queues/${encodeURIComponent(group.queue)}`} className="ln" title={nameOf(group)}>
        {nameOf(group)}
      </Link>
    ),
  },
  { key: "ready", head: "queued", cell: (group) => <Count value={group.ready} />, isNumber: true, width: 90 },
  {
    key: "in",
    head: "arrive /s",
    cell: (group) => <span className="d2">{rate(group.arrivalsPerS)}</span>,
    isNumber: true,
    width: 90,
  },
  { key: "took", head: "run time", cell: (group) => <Duration seconds={group.runS} />, isNumber: true, width: 110 },
  { key: "slots", head: "slots now", cell: (group) => <Count value={group.slots} />, isNumber: true, width: 110 },
  {
    key: "needed",
    head: "slots needed",
    cell: (group) => <Count value={group.suggestedSlots} />,
    isNumber: true,
    width: 130,
  },
  { key: "state", head: <span className="unseen">state</span>, cell: (group) => <State group={group} />, width: 140 },
];

export function EnoughSlots({ load }: { load: Answer<"/load"> }) {
  if (load.groups.length === 0) return <Empty title="Nothing waits, and nothing runs" />;
  return (
    <DataTable
      caption="Slots that each queue and pool has and needs"
      columns={COLUMNS}
      rows={load.groups}
      rowKey={(group) => `${group.app} ${group.queue} ${group.pool}`}
      phone={(group) => (
        <div className="row">
          <span className="gr el">{nameOf(group)}</span>
          <span className="d2 nw">
            {group.slots}, needs {group.suggestedSlots}
          </span>
          <State group={group} />
        </div>
      )}
    />
  );
}

function nameOf(group: Group): string {
  return group.pool === "default" ? group.queue : `${group.queue}, pool ${group.pool}`;
}

function State({ group }: { group: Group }) {
  if (group.paused)
    return (
      <MarkChip icon="pause" colour="warn">
        Paused
      </MarkChip>
    );
  if (group.slots === 0 && group.ready > 0)
    return (
      <MarkChip icon="octagon-cross" colour="failed">
        No worker
      </MarkChip>
    );
  if (group.slots < group.suggestedSlots)
    return (
      <MarkChip icon="triangle" colour="warn">
        Too few
      </MarkChip>
    );
  return (
    <MarkChip icon="tick" colour="success" isQuiet>
      Enough
    </MarkChip>
  );
}
