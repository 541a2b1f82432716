import type { PointerEvent } from "react";
import { markOf } from "../../lib/states";
import css from "./Graph.module.css";
import { type Place, TALL, WIDE } from "./layout";
import type { GraphNode } from "./types";
import type { Size, View } from "./useViewport";

interface Props {
  nodes: readonly GraphNode[];
  places: ReadonlyMap<string, Place>;
  size: Size;
  view: View;
  frame: Size;
  onCentre: (x: number, y: number) => void;
}

const WIDTH = 180;
const HEIGHT = 110;

// The whole of a large graph, with a frame around what is seen. A press or a drag moves there.
export function MiniMap({ nodes, places, size, view, frame, onCentre }: Props) {
  const move = (event: PointerEvent<SVGSVGElement>) => {
    if (event.buttons === 0) return;
    event.stopPropagation();
    const matrix = event.currentTarget.getScreenCTM()?.inverse();
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix);
    onCentre(at.x, at.y);
  };
  return (
    <svg
      className={css.map}
      width={WIDTH}
      height={HEIGHT}
      viewBox={`0 0 ${size.width} ${size.height}`}
      role="img"
      aria-label="The whole graph"
      onPointerDown={move}
      onPointerMove={move}
    >
      {nodes.map((node) => (
        <rect
          key={node.id}
          x={places.get(node.id)?.x}
          y={places.get(node.id)?.y}
          width={WIDE}
          height={TALL}
          fill={`var(--${markOf(node.status).colour})`}
        />
      ))}
      <rect
        x={-view.x / view.zoom}
        y={-view.y / view.zoom}
        width={frame.width / view.zoom}
        height={frame.height / view.zoom}
        fill="none"
        stroke="var(--ink)"
        strokeWidth={2}
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  );
}
