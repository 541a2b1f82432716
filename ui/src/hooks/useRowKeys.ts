import { useState } from "react";
import { useLocation } from "wouter";
import { useKeys } from "./useKeys";
import type { Selection } from "./useSelection";

interface Rows<T> {
  rows: readonly T[];
  rowKey: (row: T) => string;
  href?: (row: T) => string;
  selection?: Selection<T>;
}

// j and k move a focus through rows, x and Shift+x select, Enter opens, Esc drops the focus. Returns the key of the row.
export function useRowKeys<T>({ rows, rowKey, href, selection }: Rows<T>): string | null {
  const [focused, setFocused] = useState<string | null>(null);
  const [, go] = useLocation();
  const at = rows.findIndex((row) => rowKey(row) === focused);
  const row = rows[at];
  const move = (step: number) => {
    const next = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + step))];
    if (next !== undefined) setFocused(rowKey(next));
  };
  useKeys({
    j: { does: "next row", run: () => move(1) },
    k: { does: "previous row", run: () => move(-1) },
    ...(selection === undefined
      ? {}
      : {
          x: { does: "select the row", run: () => row !== undefined && selection.toggle(row) },
          X: { does: "select up to the row", run: () => row !== undefined && selection.toggle(row, true) },
        }),
    ...(href === undefined ? {} : { Enter: { does: "open the row", run: () => row !== undefined && go(href(row)) } }),
    ...(focused === null ? {} : { Escape: { does: "leave the rows", run: () => setFocused(null), isHidden: true } }),
  });
  return focused;
}
