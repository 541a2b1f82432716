import { useEffect, useRef, useState } from "react";

export interface Selection<T> {
  count: number;
  keys: readonly string[];
  has: (row: T) => boolean;
  isAll: (rows: readonly T[]) => boolean;
  // With isRange all rows from the last toggled one to this one.
  toggle: (row: T, isRange?: boolean) => void;
  setAll: (rows: readonly T[]) => void;
  clear: () => void;
}

// The rows that are chosen, by their keys, so that new rows and other pages leave the choice as it is. A reload brings it
// back from the storage of the tab, under the name of the list; leaving the list drops it.
export function useSelection<T>(name: string, rows: readonly T[], keyOf: (row: T) => string): Selection<T> {
  const [keys, setKeys] = useState<ReadonlySet<string>>(() => read(name));
  useEffect(() => write(name, keys), [name, keys]);
  useEffect(() => () => write(name, new Set()), [name]);
  const anchor = useRef<string | null>(null);
  const toggle = (row: T, isRange = false) => {
    const all = rows.map(keyOf);
    const to = all.indexOf(keyOf(row));
    const from = isRange && anchor.current !== null ? all.indexOf(anchor.current) : -1;
    const chosen = from < 0 ? [keyOf(row)] : all.slice(Math.min(from, to), Math.max(from, to) + 1);
    const isOn = !keys.has(keyOf(row));
    const next = new Set(keys);
    for (const key of chosen) isOn ? next.add(key) : next.delete(key);
    anchor.current = keyOf(row);
    setKeys(next);
  };
  return {
    count: keys.size,
    keys: [...keys],
    has: (row) => keys.has(keyOf(row)),
    isAll: (of) => of.length > 0 && of.every((row) => keys.has(keyOf(row))),
    toggle,
    setAll: (of) => setKeys(new Set(of.map(keyOf))),
    clear: () => setKeys(new Set()),
  };
}

function read(name: string): ReadonlySet<string> {
  try {
    return new Set(JSON.parse(sessionStorage.getItem(`rota.selection.${name}`) ?? "[]"));
  } catch {
    return new Set();
  }
}

function write(name: string, keys: ReadonlySet<string>): void {
  try {
    if (keys.size === 0) sessionStorage.removeItem(`rota.selection.${name}`);
    else sessionStorage.setItem(`rota.selection.${name}`, JSON.stringify([...keys]));
  } catch {
    // A browser that keeps nothing loses the choice with a reload.
  }
}
