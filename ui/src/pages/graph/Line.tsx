import { BaseEdge, type Edge, type EdgeProps } from "@xyflow/react";
import { type Place, pathThrough } from "./layout";

type Bent = Edge<{ bends: readonly Place[] }, "line">;

// An edge that passes between the nodes of the ranks that it crosses, not behind them.
export function Line({ sourceX, sourceY, targetX, targetY, data, style, markerEnd, label }: EdgeProps<Bent>) {
  const points = [{ x: sourceX, y: sourceY }, ...(data?.bends ?? []), { x: targetX, y: targetY }];
  const middle = points[Math.floor(points.length / 2)];
  return (
    <BaseEdge
      path={pathThrough(points)}
      style={style}
      markerEnd={markerEnd}
      label={label}
      labelX={points.length === 2 ? (sourceX + targetX) / 2 : middle?.x}
      labelY={points.length === 2 ? (sourceY + targetY) / 2 : middle?.y}
    />
  );
}
