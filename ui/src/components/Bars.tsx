export interface Stack {
  key: string | number;
  // From the bottom up.
  parts: readonly { value: number; colour: string; opacity?: number }[];
  title?: string;
}

interface Props {
  stacks: readonly Stack[];
  label: string;
  width?: number;
  height?: number;
  gap?: number;
}

// Stacked bars, such as the outcomes of each minute. It fills its parent if no width is given.
export function Bars({ stacks, label, width, height = 20, gap = 1 }: Props) {
  const total = Math.max(1e-9, ...stacks.map((stack) => stack.parts.reduce((sum, part) => sum + part.value, 0)));
  const inner = width ?? 600;
  const step = inner / Math.max(1, stacks.length);
  return (
    <svg
      width={width ?? "100%"}
      height={height}
      viewBox={`0 0 ${inner} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path d={`M0 ${height - 0.5}H${inner}`} stroke="var(--line)" vectorEffect="non-scaling-stroke" />
      {stacks.map((stack, index) => (
        <g key={stack.key}>
          {stack.title !== undefined && <title>{stack.title}</title>}
          {rectangles(stack, total, height).map(({ part, y, tall }) => (
            <rect
              key={part.colour}
              x={index * step}
              y={y}
              width={Math.max(0.5, step - gap)}
              height={tall}
              fill={`var(--${part.colour})`}
              opacity={part.opacity}
            />
          ))}
        </g>
      ))}
    </svg>
  );
}

function rectangles(stack: Stack, total: number, height: number) {
  let below = 0;
  return stack.parts
    .filter((part) => part.value > 0)
    .map((part) => {
      // One pixel at least, so that a single failure among thousands is seen.
      const tall = Math.max(1, (part.value / total) * (height - 1));
      below += tall;
      return { part, y: height - below, tall };
    });
}
