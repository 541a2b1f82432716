type Points = readonly (number | null)[];

// Without gaps after the first sample: a minute without a sample is as the one before.
export function known(points: Points): (number | null)[] {
  let last: number | null = null;
  return points.map((point) => {
    last = point ?? last;
    return last;
  });
}

// Neighbours added up, so that `bars` are left.
export function summed(points: Points, bars: number): number[] {
  const each = Math.max(1, Math.ceil(points.length / bars));
  const found: number[] = [];
  for (let at = 0; at < points.length; at += each)
    found.push(points.slice(at, at + each).reduce((sum: number, point) => sum + (point ?? 0), 0));
  return found;
}
