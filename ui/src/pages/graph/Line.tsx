import { type Place, pathThrough, TALL, WIDE } from "./layout";
import type { GraphEdge } from "./types";

interface Props {
  edge: GraphEdge;
  places: ReadonlyMap<string, Place>;
  bends: readonly Place[];
}

const ARROW = 7;

// An edge that passes between the nodes of the ranks that it crosses, not behind them.
export function Line({ edge, places, bends }: Props) {
  const from = places.get(edge.from);
  const to = places.get(edge.to);
  if (from === undefined || to === undefined) return null;
  const start = { x: from.x + WIDE, y: from.y + TALL / 2 };
  const end = { x: to.x, y: to.y + TALL / 2 };
  const points = [start, ...bends, { x: end.x - ARROW, y: end.y }];
  const middle = points.length === 2 ? between(start, end) : points[Math.floor(points.length / 2)];
  const colour = edge.isCritical ? "var(--ink)" : "var(--line-2)";
  return (
    <g>
      <path
        d={pathThrough(points)}
        fill="none"
        stroke={colour}
        strokeWidth={edge.isCritical ? 2 : 1.5}
        strokeDasharray={edge.isDashed ? "3 3" : undefined}
      />
      <path d={`M${end.x} ${end.y}l-${ARROW} -4v8z`} fill={colour} />
      {edge.label !== undefined && (
        <text x={middle?.x} y={(middle?.y ?? 0) - 4} textAnchor="middle" fontSize={11} fill="var(--ink-3)">
          {edge.label}
        </text>
      )}
    </g>
  );
}

function between(one: Place, other: Place): Place {
  return { x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 };
}
