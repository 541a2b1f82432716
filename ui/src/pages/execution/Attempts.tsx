import { Link } from "wouter";
import { Bytes } from "../../components/Count";
import { type Column, DataTable } from "../../components/DataTable";
import { Panel } from "../../components/Panel";
import { StateChip } from "../../components/StateChip";
import { Duration, Time } from "../../components/Time";
import { useIsTight } from "../../hooks/useMedia";
import { plural } from "../../lib/format";
import { reasonWords } from "../../lib/reasons";
import css from "./Attempts.module.css";
import { AttemptTimeline } from "./AttemptTimeline";
import { type Attempt, className, type Execution } from "./attempt";

interface Props {
  execution: Execution;
  attempts: readonly Attempt[];
  chosen: number | null;
  onChoose: (fence: number) => void;
  // "Exponential, base 10 s"
  policy: string | null;
}

export function Attempts({ execution, attempts, chosen, onChoose, policy }: Props) {
  const rows = [...attempts].reverse();
  const isTight = useIsTight();
  return (
    <Panel title="Attempts" note={noteOf(attempts)} right={<span className="sm d3">{policy}</span>} isFlush>
      <div className={css.time}>
        <AttemptTimeline attempts={attempts} createdAt={execution.createdAt} chosen={chosen} onChoose={onChoose} />
      </div>
      <DataTable
        caption="Attempts, newest first"
        columns={columnsOf(
          onChoose,
          attempts.some((attempt) => attempt.usage !== null),
          isTight,
        ).filter(({ key }) => !isTight || key !== "worker")}
        rows={rows}
        rowKey={(attempt) => String(attempt.fence)}
        isOn={(attempt) => attempt.fence === chosen}
        phone={(attempt) => <OnPhone attempt={attempt} onChoose={onChoose} />}
      />
    </Panel>
  );
}

function columnsOf(onChoose: (fence: number) => void, hasUsage: boolean, isTight: boolean): Column<Attempt>[] {
  const columns: Column<Attempt>[] = [
    {
      key: "number",
      head: "#",
      width: 44,
      cell: (attempt) => <Choose attempt={attempt} onChoose={onChoose} />,
    },
    {
      key: "status",
      head: "ended as",
      width: isTight ? 92 : 120,
      cell: (attempt) => <StateChip status={attempt.status} />,
    },
    { key: "reason", head: "reason", cell: (attempt) => <Reason code={attempt.reason} /> },
    {
      key: "error",
      head: "error",
      width: isTight ? 112 : undefined,
      cell: (attempt) => (
        <span className="mono" title={attempt.error?.message}>
          {attempt.error === null ? "—" : className(attempt.error.type)}
        </span>
      ),
    },
    {
      key: "started",
      head: "started",
      isNumber: true,
      width: isTight ? 84 : 104,
      cell: (attempt) => <Time at={attempt.startedAt} />,
    },
    {
      key: "took",
      head: "took",
      isNumber: true,
      width: isTight ? 84 : 92,
      cell: (attempt) => <Duration from={attempt.startedAt} to={attempt.completedAt} />,
    },
    { key: "worker", head: "worker", width: 110, cell: (attempt) => <WorkerLink name={attempt.worker} /> },
  ];
  return hasUsage ? [...columns, ...USAGE] : columns;
}

// Only of processes of their own.
const USAGE: readonly Column<Attempt>[] = [
  {
    key: "cpu",
    head: "cpu",
    isNumber: true,
    width: 70,
    cell: (attempt) => <span className="d2">{<Duration seconds={attempt.usage?.cpu ?? null} />}</span>,
  },
  {
    key: "memory",
    head: "peak memory",
    isNumber: true,
    width: 96,
    cell: (attempt) => <span className="d2">{<Bytes value={attempt.usage?.peakBytes} />}</span>,
  },
];

function Choose({ attempt, onChoose }: { attempt: Attempt; onChoose: (fence: number) => void }) {
  return (
    <button
      type="button"
      className={css.choose}
      aria-label={`Attempt ${attempt.number}: show its error and log`}
      onClick={() => onChoose(attempt.fence)}
    >
      {attempt.number}
    </button>
  );
}

function Reason({ code }: { code: string | null }) {
  if (code === null) return <span className="d3">—</span>;
  return (
    <span className="d2" title={`${reasonWords(code)} (${code})`}>
      {reasonWords(code)}
    </span>
  );
}

function WorkerLink({ name }: { name: string | null }) {
  if (name === null) return <span className="d3">—</span>;
  return (
    <Link href={`/workers/${encodeURIComponent(name)}`} className="ln" title={name}>
      {name}
    </Link>
  );
}

function OnPhone({ attempt, onChoose }: { attempt: Attempt; onChoose: (fence: number) => void }) {
  return (
    <button type="button" className={`row ${css.phone}`} onClick={() => onChoose(attempt.fence)}>
      <b>{attempt.number}</b>
      <span className="gr">
        <StateChip status={attempt.status} />
      </span>
      <span className="d2">
        <Time at={attempt.startedAt} />
      </span>
      <Duration from={attempt.startedAt} to={attempt.completedAt} />
    </button>
  );
}

function noteOf(attempts: readonly Attempt[]): string {
  const failed = attempts.filter((attempt) => attempt.status === "failed");
  if (failed.length === 0) return "";
  const kinds = new Set(failed.map((attempt) => attempt.error?.type ?? attempt.reason));
  const same = failed.length > 1 && kinds.size === 1 ? ", all with the same error" : "";
  return `${failed.length} of ${plural(attempts.length, "attempt")} failed${same}`;
}
