import { Link } from "wouter";
import type { Answer } from "../../api/types";
import { Button } from "../../components/Button";
import { type Column, DataTable } from "../../components/DataTable";
import { Id } from "../../components/Id";
import { Pager } from "../../components/Pager";
import { MarkChip } from "../../components/StateChip";
import { Empty } from "../../components/States";
import { Duration, Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { useNow } from "../../hooks/useNow";
import { useUrlState } from "../../hooks/useUrlState";
import { useZone } from "../../hooks/useZone";
import { plural } from "../../lib/format";
import { shortTime } from "../../lib/zone";
import { RunTicks } from "./RunTicks";
import { type Entry, hasStarted, outcomeWords, type Schedule, whyWords } from "./words";

interface Props {
  schedule: Schedule;
  ledger: Answer<"/schedules/{schedule}/ticks">;
  isMissedOnly: boolean;
  // The next tick, where it is in the time on screen.
  nextAt: string | null;
}

// A row that is still to come has no entry yet.
interface Row {
  key: string;
  entry: Entry | null;
  at: string;
  why: string;
}

// The outcome of every tick, newest first.
export function Ledger({ schedule, ledger, isMissedOnly, nextAt }: Props) {
  const url = useUrlState();
  const now = useNow();
  const { zone } = useZone();
  const runs = useRuns(ledger.items);
  const clock = (at: string) => shortTime(new Date(at), zone, new Date(now));
  const rows = rowsOf(ledger.items, clock);
  const newest = rows[0]?.at ?? "";
  if (nextAt !== null && nextAt > newest && !isMissedOnly && url.one("cursor") === null)
    rows.unshift({ key: "next", entry: null, at: nextAt, why: "" });
  if (rows.length === 0)
    return (
      <Empty title={isMissedOnly ? "Every tick ran" : "No tick in this time"}>
        {!isMissedOnly && <span>Choose another day above, or a square of the calendar.</span>}
      </Empty>
    );
  const columns: Column<Row>[] = [
    { key: "tick", head: "tick", cell: (row) => <Moment row={row} />, width: 150 },
    {
      key: "outcome",
      head: "outcome",
      cell: (row) => <Outcome row={row} status={runs.get(idOf(row))?.status} />,
      width: 120,
    },
    { key: "why", head: "why", cell: (row) => <span className="d2">{row.why}</span> },
    { key: "took", head: "took", cell: (row) => <Took run={runs.get(idOf(row))} />, isNumber: true, width: 130 },
    { key: "execution", head: "execution", cell: (row) => <Execution row={row} />, width: 100 },
    {
      key: "act",
      head: <span className="unseen">actions</span>,
      cell: (row) => <RunRow schedule={schedule} row={row} />,
      isNumber: true,
      width: 84,
    },
  ];
  return (
    <>
      <DataTable
        caption={`Ticks of ${schedule.name}`}
        columns={columns}
        rows={rows}
        rowKey={(row) => row.key}
        rowHeight={30}
        phone={(row) => (
          <div className="col" style={{ gap: 4 }}>
            <div className="row">
              <span className="gr">
                <Moment row={row} />
              </span>
              <Outcome row={row} status={runs.get(idOf(row))?.status} />
            </div>
            <div className="row sm">
              <span className="gr d2">{row.why}</span>
              <Execution row={row} />
              <RunRow schedule={schedule} row={row} />
            </div>
          </div>
        )}
      />
      {(ledger.nextCursor !== null || ledger.previousCursor !== null) && (
        <Pager
          newer={ledger.previousCursor === null ? undefined : () => url.set({ cursor: ledger.previousCursor })}
          older={ledger.nextCursor === null ? undefined : () => url.set({ cursor: ledger.nextCursor })}
        >
          {plural(ledger.items.length, "row")} shown
        </Pager>
      )}
    </>
  );
}

type Run = { status?: string; startedAt?: string | null; completedAt?: string | null };

const MOST_IDS = 100;

// How long the executions of these ticks took.
function useRuns(entries: readonly Entry[]): Map<string, Run> {
  const ids = entries.flatMap((entry) => (entry.executionId === null ? [] : [entry.executionId])).slice(0, MOST_IDS);
  const found = useApi(
    "/executions",
    { query: { id: ids, limit: MOST_IDS, fields: "executionId,status,startedAt,completedAt" } },
    { enabled: ids.length > 0, live: ["pulse"], everyMs: 2000 },
  );
  return new Map((found.data?.items ?? []).map((run) => [run.executionId ?? "", run]));
}

function rowsOf(entries: readonly Entry[], clock: (at: string) => string): Row[] {
  return entries.map((entry, index) => {
    const before = entries.slice(index + 1).find((older) => hasStarted(older.outcome));
    const why = whyWords(entry, before === undefined ? null : clock(before.at));
    return { key: `${entry.at} ${entry.scheduleId}`, entry, at: entry.at, why };
  });
}

function idOf(row: Row): string {
  return row.entry?.executionId ?? "";
}

function Moment({ row: { at, entry } }: { row: Row }) {
  if (entry === null || entry.count === 1) return <Time at={at} />;
  return (
    <span className="nw">
      <Time at={at} /> <span className="d3">and {entry.count - 1} more</span>
    </span>
  );
}

function Outcome({ row: { entry }, status }: { row: Row; status?: string }) {
  const words = entry === null ? outcomeWords("planned", null) : outcomeWords(entry.outcome, status ?? entry.status);
  return <MarkChip {...words}>{words.word}</MarkChip>;
}

function Took({ run }: { run?: Run }) {
  if (!run?.startedAt) return null;
  return (
    <span className="d2">
      {run.completedAt === null && "for "}
      <Duration from={run.startedAt} to={run.completedAt} />
    </span>
  );
}

function Execution({ row: { entry } }: { row: Row }) {
  if (entry === null || entry.executionId === null) return null;
  return (
    <Link href={`/executions/${entry.executionId}`} className="ln">
      <Id id={entry.executionId} />
    </Link>
  );
}

function RunRow({ schedule, row: { entry } }: { schedule: Schedule; row: Row }) {
  if (entry === null || hasStarted(entry.outcome) || entry.outcome === "queued") return null;
  // What a calendar excludes, and a time that does not exist, is left out by a backfill as well.
  if (entry.outcome === "excluded" || entry.outcome === "dst_gap" || schedule.after !== null) return null;
  return <RunTicks schedule={schedule} entry={entry} />;
}

export function ClearSpan() {
  const url = useUrlState();
  return (
    <Button isSmall onClick={() => url.set({ span: null, cursor: null })}>
      Only the time above
    </Button>
  );
}
