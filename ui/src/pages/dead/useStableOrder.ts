import { useState } from "react";

// Rows keep their places while their numbers change; new ones come at the end, until the page shows something else.
export function useStableOrder<T>(rows: readonly T[], keyOf: (row: T) => string, view: string): T[] {
  const [kept, setKept] = useState<{ view: string; keys: readonly string[] }>({ view, keys: [] });
  const found = new Map(rows.map((row) => [keyOf(row), row]));
  const known = kept.view === view ? kept.keys : [];
  const added = [...found.keys()].filter((key) => !known.includes(key));
  if (added.length > 0 || kept.view !== view) setKept({ view, keys: [...known, ...added] });
  return [...known, ...added].flatMap((key) => {
    const row = found.get(key);
    return row === undefined ? [] : [row];
  });
}
