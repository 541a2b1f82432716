import { useApi } from "../hooks/useApi";
import { capped, count } from "../lib/format";

export interface Badge {
  text: string;
  isBad: boolean;
}

// The numbers beside places, by address. Only dead letters are red.
export function useBadges(): Record<string, Badge> {
  const overview = useApi("/overview", {}, { live: ["pulse", "changes"], everyMs: 5000 });
  const dead = useApi("/counts", { query: { of: "executions", dead: true } }, { live: ["pulse"], everyMs: 5000 });
  const total = dead.data?.count ?? 0;
  const isCapped = dead.data?.isCapped ?? false;
  const findings = overview.data?.findingCount ?? 0;
  return {
    ...(findings === 0 ? {} : { "/alerts": { text: count(findings), isBad: false } }),
    ...(total === 0 ? {} : { "/dead": { text: capped(total, isCapped), isBad: true } }),
  };
}
