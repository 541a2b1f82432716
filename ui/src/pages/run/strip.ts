import type { Step } from "./model";

// The items of a map by state, as shares of its width.
export function stripOf(step: Step): { share: number; colour: string }[] {
  const map = step.map;
  if (map === null || map.width === 0) return [];
  const part = (number: number, colour: string) => ({ share: number / map.width, colour });
  return [
    part(map.success, "success"),
    part(map.failed, "failed"),
    part(map.running, "running"),
    part(map.cancelled + map.skipped, "rest"),
  ].filter((one) => one.share > 0);
}
