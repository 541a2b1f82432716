import { useApi } from "../hooks/useApi";
import { capped } from "../lib/format";

export interface Badge {
  text: string;
  isBad: boolean;
}

// The numbers beside places, by address. Only dead letters are red.
export function useBadges(): Record<string, Badge> {
  const dead = useApi("/counts", { query: { of: "executions", dead: true } }, { live: ["pulse"], everyMs: 5000 });
  const total = dead.data?.count ?? 0;
  const isCapped = dead.data?.isCapped ?? false;
  return total === 0 ? {} : { "/dead": { text: capped(total, isCapped), isBad: true } };
}
