import { useNow } from "../../hooks/useNow";
import { useZone } from "../../hooks/useZone";
import { duration } from "../../lib/format";
import { markOf } from "../../lib/states";
import { shortTime } from "../../lib/zone";
import css from "./AttemptTimeline.module.css";
import type { Attempt } from "./attempt";
import { type Piece, piecesOf } from "./timeline";

interface Props {
  attempts: readonly Attempt[];
  createdAt: string;
  chosen: number | null;
  onChoose: (fence: number) => void;
}

const MOST = 14;
const WIDE = 790;
const LABEL = 76;

// The wait for a slot, the attempts, and the waits between them on one axis.
export function AttemptTimeline({ attempts, createdAt, chosen, onChoose }: Props) {
  const now = useNow();
  const shown = attempts.slice(-MOST);
  const begin = shown.length === attempts.length ? createdAt : (shown[0]?.startedAt ?? createdAt);
  const pieces = piecesOf(shown, begin, now, WIDE);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms.
    <div className={css.line} role="group" aria-label={sentence(attempts)}>
      {pieces.map((piece) => (
        <PieceView
          key={`${piece.kind} ${piece.x}`}
          piece={piece}
          isOn={piece.attempt !== null && piece.attempt.fence === chosen}
          onChoose={onChoose}
        />
      ))}
      <Times pieces={pieces} now={now} />
    </div>
  );
}

function share(pixels: number): string {
  return `${(pixels / WIDE) * 100}%`;
}

interface PieceProps {
  piece: Piece;
  isOn: boolean;
  onChoose: (fence: number) => void;
}

function PieceView({ piece, isOn, onChoose }: PieceProps) {
  const place = { left: share(piece.x), width: share(piece.width) };
  if (piece.kind === "slot")
    return <i className={css.slot} style={place} title={`waited ${duration(piece.seconds)}`} />;
  if (piece.kind === "wait" || piece.attempt === null)
    return (
      <span className={css.wait} style={place} title={`waits ${duration(piece.seconds)}`}>
        {piece.width > LABEL && <span>waits {duration(piece.seconds)}</span>}
      </span>
    );
  const { attempt } = piece;
  const { colour, word } = markOf(attempt.status);
  return (
    <button
      type="button"
      className={`${css.attempt} ${isOn ? css.on : ""}`}
      style={{ ...place, background: `var(--${colour})` }}
      aria-label={`${attempt.number}: ${word.toLowerCase()}, ${duration(piece.seconds)}`}
      aria-pressed={isOn}
      title={`attempt ${attempt.number}: ${word.toLowerCase()}, ${duration(piece.seconds)}`}
      onClick={() => onChoose(attempt.fence)}
    >
      {attempt.number}
    </button>
  );
}

// The beginning of each attempt, where there is room for it.
function Times({ pieces, now }: { pieces: readonly Piece[]; now: number }) {
  const { zone } = useZone();
  let free = 0;
  return pieces
    .filter((piece) => piece.attempt !== null)
    .map((piece) => {
      const at = piece.attempt?.startedAt ?? null;
      const isLast = piece.x > WIDE - LABEL;
      if (at === null || (isLast ? WIDE - LABEL : piece.x) < free) return null;
      free = piece.x + LABEL;
      const place = isLast ? { right: 0 } : { left: share(piece.x) };
      return (
        <span key={at} className={`xs d3 tab ${css.time}`} style={place}>
          {shortTime(new Date(at), zone, new Date(now))}
        </span>
      );
    });
}

function sentence(attempts: readonly Attempt[]): string {
  const parts = attempts.map((one) => `attempt ${one.number} ${markOf(one.status).word.toLowerCase()}`);
  return parts.join(", ");
}
