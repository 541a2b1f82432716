import { useSignal } from "../lib/signal";
import { type Zone, zone, zoneLabel } from "../lib/zone";

export function useZone(): { zone: Zone; label: string; toggle: () => void } {
  const chosen = useSignal(zone);
  return {
    zone: chosen,
    label: zoneLabel(chosen),
    toggle: () => zone.set(zone.get() === "local" ? "UTC" : "local"),
  };
}
