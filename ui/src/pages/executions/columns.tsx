import { Link } from "wouter";
import type { Column } from "../../components/DataTable";
import { Tag } from "../../components/Facts";
import { Id } from "../../components/Id";
import { StateChip } from "../../components/StateChip";
import { Duration, Time } from "../../components/Time";
import { argumentsInLine } from "../../lib/format";
import { stored } from "../../lib/stored";
import type { ExecutionItem } from "./filter";
import { Reason } from "./Reason";
import { attemptsOf, tookOf } from "./words";

type Cell = Column<ExecutionItem>;

export const FIELDS =
  "executionId,status,job,app,arguments,reason,errorMessage,attemptCount,createdAt,startedAt,completedAt,runAt,why," +
  "queue,priority,worker,workerId,tags,runId,step,cancelRequestedAt,maxAttempts,progress";

const SHOWN = ["arguments", "attempts", "took"] as const;
const MORE = ["queue", "worker", "tags", "priority", "run", "ended"] as const;
export type Choosable = (typeof SHOWN)[number] | (typeof MORE)[number];
export const CHOOSABLE: readonly Choosable[] = [...SHOWN, ...MORE];

// The columns that a reader chose, as names with commas.
export const chosen = stored<string>("rota.columns", SHOWN.join(","));

interface Setting {
  now: number;
  href: (id: string) => string;
  isTight: boolean;
  // The job is the same in every row and left out: its arguments lead to the execution.
  isOfOneJob: boolean;
}

// Without room the id gives way: it is on the page of the execution.
export function columnsOf(names: string, { now, href, isTight, isOfOneJob }: Setting): Cell[] {
  const wanted = new Set(names.split(","));
  const all: (Cell & { name?: Choosable })[] = [
    { key: "state", head: "state", width: 112, cell: (row) => <StateChip status={row.status ?? ""} /> },
    { key: "job", head: "job", width: isTight ? 116 : "11%", cell: (row) => <JobLink row={row} href={href} /> },
    {
      key: "arguments",
      name: "arguments",
      head: "arguments",
      width: isOfOneJob ? "26%" : isTight ? "17%" : "18%",
      cell: (row) => <Arguments row={row} href={isOfOneJob ? href : undefined} />,
    },
    { key: "why", head: "reason and error", cell: (row) => <Reason row={row} href={href} /> },
    { key: "queue", name: "queue", head: "queue", width: 110, cell: (row) => <Place kind="queues" name={row.queue} /> },
    {
      key: "worker",
      name: "worker",
      head: "worker",
      width: 120,
      cell: (row) => <Place kind="workers" name={row.worker} />,
    },
    { key: "tags", name: "tags", head: "tags", width: 120, cell: (row) => <Tags tags={row.tags} /> },
    { key: "priority", name: "priority", head: "priority", isNumber: true, width: 70, cell: (row) => row.priority },
    { key: "run", name: "run", head: "run and step", width: 140, cell: (row) => <RunLink row={row} /> },
    {
      key: "attempts",
      name: "attempts",
      head: "attempts",
      isNumber: true,
      width: 68,
      cell: (row) => <span className="d2">{attemptsOf(row)}</span>,
    },
    {
      key: "took",
      name: "took",
      head: "took",
      isNumber: true,
      width: 92,
      cell: (row) => <Duration seconds={tookOf(row, now)} />,
    },
    {
      key: "created",
      head: "created",
      isNumber: true,
      width: 104,
      sort: "descending",
      cell: (row) => (
        <span className="d2">
          <Time at={row.createdAt} />
        </span>
      ),
    },
    {
      key: "ended",
      name: "ended",
      head: "ended",
      isNumber: true,
      width: 108,
      cell: (row) => <Time at={row.completedAt} />,
    },
    {
      key: "id",
      head: "id",
      width: 98,
      cell: (row) => <Id id={row.executionId ?? ""} href={href(row.executionId ?? "")} />,
    },
  ];
  const isShown = ({ key, name }: (typeof all)[number]) => {
    if (isOfOneJob && key === "job") return false;
    if (isOfOneJob && key === "arguments") return true;
    return (name === undefined || wanted.has(name)) && !(isTight && key === "id");
  };
  return all.filter(isShown);
}

function Arguments({ row, href }: { row: ExecutionItem; href?: (id: string) => string }) {
  const text = argumentsInLine(row.arguments as Record<string, unknown> | null);
  if (href === undefined)
    return (
      <span className="mono d2" title={text}>
        {text}
      </span>
    );
  return (
    <Link href={href(row.executionId ?? "")} className="mono d2" title={text}>
      {text}
    </Link>
  );
}

function JobLink({ row, href }: { row: ExecutionItem; href: (id: string) => string }) {
  return (
    <Link href={href(row.executionId ?? "")} className="ln" title={row.job}>
      {row.job}
    </Link>
  );
}

function Place({ kind, name }: { kind: "queues" | "workers"; name: string | null | undefined }) {
  if (!name) return <span className="d3">—</span>;
  return (
    <Link href={`/${kind}/${encodeURIComponent(name)}`} className="ln" title={name}>
      {name}
    </Link>
  );
}

function RunLink({ row }: { row: ExecutionItem }) {
  if (!row.runId) return <span className="d3">—</span>;
  return (
    <Link href={`/runs/${row.runId}${row.step ? `?step=${encodeURIComponent(row.step)}` : ""}`} className="ln">
      {row.step ?? "run"}
    </Link>
  );
}

function Tags({ tags }: { tags: readonly string[] | null | undefined }) {
  return (
    <span className="row" style={{ gap: 4 }}>
      {(tags ?? []).map((tag) => (
        <Tag key={tag}>{tag}</Tag>
      ))}
    </span>
  );
}
