const STEPS_S = [60, 300, 600, 900, 1200, 1800, 3600, 7200, 14_400, 43_200, 86_400];
const MOST_POINTS = 90;
const MINUTES_KEPT_S = 48 * 3600;

// Seconds of an interval, so that a small chart has enough points and not too many. Older minutes are kept as hours only.
export function stepOf(begin: number, end: number, now: number): number {
  const least = (now - begin) / 1000 > MINUTES_KEPT_S - 3600 ? 3600 : 60;
  const seconds = (end - begin) / 1000;
  return STEPS_S.find((step) => step >= least && seconds / step <= MOST_POINTS) ?? 86_400;
}
