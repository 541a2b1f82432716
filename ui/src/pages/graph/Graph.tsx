import { useMemo } from "react";
import css from "./Graph.module.css";
import { Line } from "./Line";
import { edgeId, layoutOf } from "./layout";
import { MiniMap } from "./MiniMap";
import { Node } from "./Node";
import type { GraphProps } from "./types";
import { useViewport } from "./useViewport";

const MANY = 60;
const FAR = 0.5;

// `fits` grows each time that the graph is to fit again.
export default function Graph({
  nodes,
  edges,
  selected,
  onSelect,
  height,
  label,
  fits,
}: GraphProps & { fits: number }) {
  const shape = JSON.stringify([nodes.map((node) => node.id), edges.map((edge) => [edge.from, edge.to])]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for the ids and edges.
  const { places, bends, size } = useMemo(
    () =>
      layoutOf(
        nodes.map((node) => node.id),
        edges,
      ),
    [shape],
  );
  const { frame, view, frameSize, centre, handlers } = useViewport(size, fits);
  // Lines of the critical path lie above the others.
  const drawn = [...edges].sort((one, other) => Number(one.isCritical ?? false) - Number(other.isCritical ?? false));
  return (
    <section ref={frame} aria-label={label} style={{ minHeight: height }} className={css.graph} {...handlers}>
      <div
        className={css.moved}
        style={{ transform: `translate(${view.x}px, ${view.y}px) scale(${view.zoom})`, ...size }}
      >
        <svg className={css.lines} width={size.width} height={size.height} aria-hidden="true">
          {drawn.map((edge) => (
            <Line key={edgeId(edge)} edge={edge} places={places} bends={bends.get(edgeId(edge)) ?? []} />
          ))}
        </svg>
        {nodes.map((node) => (
          <Node
            key={node.id}
            node={node}
            place={places.get(node.id) ?? { x: 0, y: 0 }}
            isChosen={node.id === selected}
            isFar={view.zoom < FAR}
            onSelect={onSelect}
          />
        ))}
      </div>
      {nodes.length > MANY && (
        <MiniMap nodes={nodes} places={places} size={size} view={view} frame={frameSize} onCentre={centre} />
      )}
    </section>
  );
}
