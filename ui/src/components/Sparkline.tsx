interface Props {
  // Null before the first value that is known.
  points: readonly (number | null)[];
  // What it shows, in words. The value stands beside it as text.
  label: string;
  width?: number;
  height?: number;
  colour?: string;
  // The top of the scale; the largest point unless told.
  most?: number;
}

const EDGE = 3;

// The shape of a series, with its last point marked.
export function Sparkline({ points, label, width = 96, height = 20, colour = "ink-2", most }: Props) {
  const first = points.findIndex((value) => value !== null);
  const last = points.length - 1;
  if (first === -1 || first === last) return <svg width={width} height={height} role="img" aria-label={label} />;
  const top = Math.max(most ?? 0, ...points.map((value) => value ?? 0), 1e-9);
  const x = (index: number) => 1 + (index / (points.length - 1)) * (width - 2 - EDGE);
  const y = (value: number) => height - 1 - (value / top) * (height - 2 - EDGE);
  const line = points
    .slice(first)
    .map((value, index) => `${x(first + index).toFixed(1)},${y(value ?? 0).toFixed(1)}`)
    .join(" ");
  const stroke = `var(--${colour})`;
  return (
    <svg
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      style={{ maxWidth: "100%" }}
      role="img"
      aria-label={label}
    >
      <polygon points={`${x(first)},${height} ${line} ${x(last)},${height}`} fill={stroke} opacity=".14" />
      <polyline points={line} fill="none" stroke={stroke} strokeWidth="1.5" strokeLinejoin="round" />
      <circle cx={x(last)} cy={y(points[last] ?? 0)} r="2" fill={stroke} />
    </svg>
  );
}
