import { useState } from "react";

interface Steady<T> {
  rows: T[];
  // How many rows of the newest page are not shown yet.
  fresh: number;
  show: () => void;
}

// Rows keep their places while what they show changes; new ones wait until they are asked for.
export function useSteady<T>(key: string, newest: readonly T[] | undefined, idOf: (row: T) => string): Steady<T> {
  const [kept, setKept] = useState<{ key: string; rows: ReadonlyMap<string, T> }>({ key: "", rows: new Map() });
  const found = new Map((newest ?? []).map((row) => [idOf(row), row]));
  const isOther = newest !== undefined && (kept.key !== key || (kept.rows.size === 0 && found.size > 0));
  const take = () => ({ key, rows: found });
  if (isOther) setKept(take());
  const now = isOther ? take() : kept;
  return {
    rows: [...now.rows].map(([id, row]) => found.get(id) ?? row),
    fresh: [...found.keys()].filter((id) => !now.rows.has(id)).length,
    show: () => setKept(take()),
  };
}
