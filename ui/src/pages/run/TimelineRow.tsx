import { useApi } from "../../hooks/useApi";
import { duration, secondsBetween } from "../../lib/format";
import { hasEnded, markOf } from "../../lib/states";
import { type Scale, share } from "./scale";
import css from "./Timeline.module.css";

export interface TimedRow {
  key: string;
  label: string;
  isItem: boolean;
  status: string;
  // The execution, for its attempts; null for a map, a wait, or a step that was not reached.
  executionId: string | null;
  attemptCount: number;
  placedAt: string | null;
  startedAt: string | null;
  completedAt: string | null;
  expected: { from: string | null; to: string | null; usualS: number | null } | null;
  isCritical: boolean;
  // Words after the bar, instead of how long it took.
  words: string | null;
}

interface Props {
  row: TimedRow;
  scale: Scale;
  now: number;
  isOn: boolean;
  onChoose: () => void;
}

interface Piece {
  from: number;
  to: number;
  status: string;
}

// Hollow: waits for a slot. Solid: an attempt. Dotted: waits for the next attempt. Dashed: expected.
export function TimelineRow({ row, scale, now, isOn, onChoose }: Props) {
  const isRetried = row.executionId !== null && row.attemptCount > 1;
  const before = useApi(
    "/executions/{execution}/attempts",
    {
      path: { execution: row.executionId ?? "" },
      query: { limit: 50, order: "asc", fields: "status,startedAt,completedAt,fence" },
    },
    { enabled: isRetried, live: isRetried && row.completedAt === null ? [`executions:${row.executionId}`] : [] },
  );
  const past = isRetried ? ((before.data?.items ?? []) as Past[]) : [];
  const pieces = piecesOf(row, past, now);
  const first = pieces[0];
  const last = pieces.at(-1);
  const wait =
    row.placedAt !== null && first !== undefined && row.executionId !== null ? Date.parse(row.placedAt) : null;
  const ahead = expectedOf(row, now);
  const end = Math.max(last?.to ?? 0, ahead?.to ?? 0);
  const x = (at: number) => `${share(scale, at) * 100}%`;
  const wide = (from: number, to: number) => `${Math.max(0, share(scale, to) - share(scale, from)) * 100}%`;
  return (
    <li className={`${css.row} ${isOn ? css.on : ""}`}>
      <button
        type="button"
        className={`${css.label} ${row.isItem ? css.item : ""}`}
        aria-pressed={isOn}
        title={row.label}
        onClick={onChoose}
      >
        {row.label}
      </button>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the button beside it does the same for the keyboard. */}
      <svg className={css.bars} role="img" aria-label={sentenceOf(row, past.length, now)} onClick={onChoose}>
        {wait !== null && first !== undefined && (
          <rect
            x={x(wait)}
            y={8}
            width={wide(wait, first.from)}
            height={10}
            fill="none"
            stroke="var(--line-2)"
            rx={2}
          />
        )}
        {pieces.slice(1).map((piece, index) => (
          <line
            key={piece.from}
            x1={x(pieces[index]?.to ?? 0)}
            x2={x(piece.from)}
            y1={13}
            y2={13}
            className={css.retry}
          />
        ))}
        {pieces.map((piece) => (
          <rect
            key={`${piece.from} ${piece.status}`}
            x={x(piece.from)}
            y={7}
            height={12}
            rx={2}
            style={{ width: `max(2px, ${wide(piece.from, piece.to)})` }}
            {...paintOf(piece.status)}
          />
        ))}
        {ahead !== null && (
          <rect
            x={x(ahead.from)}
            y={7}
            width={wide(ahead.from, ahead.to)}
            height={12}
            rx={2}
            className={css.expected}
          />
        )}
        {row.isCritical && (first !== undefined || ahead !== null) && (
          <line
            x1={x(first?.from ?? ahead?.from ?? 0)}
            x2={x(end)}
            y1={22}
            y2={22}
            stroke="var(--ink)"
            strokeWidth={2}
          />
        )}
        {end > 0 && (
          <text x={x(end)} dx={6} y={17} className={css.words}>
            {wordsOf(row, now)}
          </text>
        )}
      </svg>
    </li>
  );
}

// What only waits, such as a question, is hollow.
function paintOf(status: string): { fill: string; stroke?: string; strokeDasharray?: string; opacity?: number } {
  const colour = `var(--${markOf(status).colour})`;
  if (status === "waiting" || status === "queued" || status === "scheduled")
    return { fill: "none", stroke: colour, strokeDasharray: status === "waiting" ? "2 2" : undefined };
  return { fill: colour, opacity: status === "success" ? 0.75 : 1 };
}

interface Past {
  status: string;
  startedAt: string | null;
  completedAt: string;
}

function piecesOf(row: TimedRow, past: readonly Past[], now: number): Piece[] {
  const pieces = past
    .filter((attempt) => attempt.startedAt !== null)
    .map((attempt) => ({
      from: Date.parse(attempt.startedAt ?? ""),
      to: Date.parse(attempt.completedAt),
      status: attempt.status === "success" ? "success" : "failed",
    }));
  const isEnded = row.completedAt !== null;
  // An ended execution has its last attempt among the past ones.
  if (row.startedAt !== null && !(isEnded && pieces.length > 0) && row.status !== "retrying")
    pieces.push({
      from: Date.parse(row.startedAt),
      to: isEnded ? Date.parse(row.completedAt ?? "") : now,
      status: row.status,
    });
  return pieces;
}

function expectedOf(row: TimedRow, now: number): { from: number; to: number } | null {
  if (row.completedAt !== null || row.expected === null || row.expected.to === null) return null;
  const from = row.startedAt !== null ? now : Date.parse(row.expected.from ?? "");
  const to = Date.parse(row.expected.to);
  return Number.isNaN(from) || to <= from ? null : { from, to };
}

function wordsOf(row: TimedRow, now: number): string {
  if (row.words !== null) return row.words;
  const usual = row.expected?.usualS ?? null;
  if (row.startedAt === null) return usual === null ? "" : `usually ${duration(usual)}`;
  if (!hasEnded(row.status) && row.attemptCount > 1) return `attempt ${row.attemptCount}`;
  return duration(secondsBetween(row.startedAt, row.completedAt ?? now));
}

function sentenceOf(row: TimedRow, attempts: number, now: number): string {
  const tries = attempts === 0 ? "" : `, ${attempts} attempts ended`;
  return `${row.label}: ${markOf(row.status).word}, ${wordsOf(row, now)}${tries}`;
}
