import { secondsBetween } from "../../lib/format";
import type { Attempt } from "./attempt";

export interface Piece {
  kind: "wait" | "attempt" | "slot";
  seconds: number;
  attempt: Attempt | null;
  x: number;
  width: number;
}

const LEAST = { wait: 10, slot: 6, attempt: 24 } as const;

// Waits and attempts side by side over a width. Lengths are true to scale, except that none is too small to be seen.
export function piecesOf(attempts: readonly Attempt[], createdAt: string, now: number, width: number): Piece[] {
  const pieces: Piece[] = [];
  let before = createdAt;
  for (const attempt of attempts) {
    if (attempt.startedAt === null) continue;
    const kind = pieces.length === 0 ? "slot" : "wait";
    pieces.push({
      kind,
      seconds: Math.max(0, secondsBetween(before, attempt.startedAt)),
      attempt: null,
      x: 0,
      width: 0,
    });
    const end = attempt.completedAt ?? now;
    const seconds = Math.max(0, secondsBetween(attempt.startedAt, end));
    pieces.push({ kind: "attempt", seconds, attempt, x: 0, width: 0 });
    before = attempt.completedAt ?? before;
  }
  return spread(pieces, width);
}

function spread(pieces: Piece[], width: number): Piece[] {
  const least = pieces.reduce((sum, piece) => sum + LEAST[piece.kind], 0);
  const total = pieces.reduce((sum, piece) => sum + piece.seconds, 0);
  const rest = Math.max(0, width - least);
  const shrink = least > width ? width / least : 1;
  let x = 0;
  for (const piece of pieces) {
    piece.x = x;
    piece.width = LEAST[piece.kind] * shrink + (total === 0 ? 0 : (piece.seconds / total) * rest);
    x += piece.width;
  }
  return pieces;
}
