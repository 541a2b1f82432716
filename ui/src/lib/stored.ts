import { type Signal, signal } from "./signal";

// A choice that stays in the browser: theme, zone, columns. Without storage it lasts until the page is left.
export function stored<T extends string>(key: string, first: T, allowed?: readonly T[]): Signal<T> {
  const inner = signal<T>(read(key, first, allowed));
  return {
    ...inner,
    set(value) {
      inner.set(value);
      try {
        localStorage.setItem(key, value);
      } catch {
        // A browser that keeps nothing still shows the choice in this tab.
      }
    },
  };
}

function read<T extends string>(key: string, first: T, allowed?: readonly T[]): T {
  try {
    const found = localStorage.getItem(key) as T | null;
    return found !== null && (allowed === undefined || allowed.includes(found)) ? found : first;
  } catch {
    return first;
  }
}
