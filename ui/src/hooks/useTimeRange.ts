import { useUrlState } from "./useUrlState";

export const RANGES = ["15m", "1h", "6h", "24h", "7d"] as const;
export const DEFAULT_RANGE = "1h";

export interface TimeRange {
  // A length such as 1h, or a moment as RFC 3339.
  since: string;
  // A moment, or null for now.
  until: string | null;
  isDefault: boolean;
  set: (since: string, until?: string | null) => void;
}

// The time range that Overview, Executions, Queues and Workers share: `since` and `until` of the address. Both fit the
// parameters `from` and `to` of the API as they are.
export function useTimeRange(): TimeRange {
  const url = useUrlState();
  const since = url.one("since") ?? DEFAULT_RANGE;
  return {
    since,
    until: url.one("until"),
    isDefault: since === DEFAULT_RANGE && url.one("until") === null,
    set: (next, until = null) => url.set({ since: next === DEFAULT_RANGE && until === null ? null : next, until }),
  };
}

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 };

// The bounds in milliseconds, for charts.
export function boundsOf(since: string, until: string | null, now: number): [number, number] {
  const end = until === null ? now : Date.parse(until);
  const length = /^(\d+)([smhd])$/.exec(since);
  const begin = length === null ? Date.parse(since) : end - Number(length[1]) * (UNITS[length[2] ?? "s"] ?? 1) * 1000;
  return [begin, end];
}

export function rangeWords(since: string): string {
  const words: Record<string, string> = { "15m": "last 15 minutes", "1h": "last hour", "24h": "last 24 hours" };
  const length = /^(\d+)([smhd])$/.exec(since);
  if (length === null) return "chosen time";
  const units: Record<string, string> = { s: "seconds", m: "minutes", h: "hours", d: "days" };
  return words[since] ?? `last ${length[1]} ${units[length[2] ?? "s"]}`;
}
