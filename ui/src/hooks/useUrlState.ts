import { useCallback, useMemo } from "react";
import { useLocation, useSearch } from "wouter";

export type Values = Record<string, string | readonly string[] | null | undefined>;

export interface UrlState {
  one: (name: string) => string | null;
  all: (name: string) => string[];
  // Changes some parameters and keeps the others; null, "" and [] remove one. A change of the view is a step of its own
  // for the button Back unless it replaces.
  set: (values: Values, options?: { replace?: boolean }) => void;
  // The address with some parameters changed, for a link.
  href: (values: Values) => string;
  search: string;
}

// All view state is in the address: filters, tabs, selection, time range.
export function useUrlState(): UrlState {
  const search = useSearch();
  const [path, go] = useLocation();
  const parameters = useMemo(() => new URLSearchParams(search), [search]);
  const href = useCallback((values: Values) => path + withValues(search, values), [path, search]);
  const set = useCallback(
    (values: Values, { replace = false } = {}) => {
      const now = new URLSearchParams(window.location.search).toString();
      go(path + withValues(now, values), { replace });
    },
    [path, go],
  );
  return {
    one: (name) => parameters.get(name),
    all: (name) => parameters.getAll(name),
    set,
    href,
    search,
  };
}

export function withValues(search: string, values: Values): string {
  const parameters = new URLSearchParams(search);
  for (const [name, value] of Object.entries(values)) {
    parameters.delete(name);
    const given =
      value === null || value === undefined || value === "" ? [] : typeof value === "string" ? [value] : value;
    for (const one of given) parameters.append(name, one);
  }
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}
