import { type Edge, MarkerType, MiniMap, ReactFlow, ReactFlowProvider, useReactFlow } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { type ReactNode, useEffect, useMemo } from "react";
import { markOf } from "../../lib/states";
import css from "./Graph.module.css";
import { Line } from "./Line";
import { edgeId, layoutOf, type Place, TALL, WIDE } from "./layout";
import { Node, type Shown } from "./Node";
import type { GraphEdge, GraphProps } from "./types";

const TYPES = { step: Node };
const EDGES = { line: Line };
const MANY = 60;
const FIT = { padding: 0.06, maxZoom: 1.1, minZoom: 0.05 };

export default function Graph(props: GraphProps & { fits: number }) {
  return (
    <ReactFlowProvider>
      <Drawn {...props} />
    </ReactFlowProvider>
  );
}

// `fits` grows each time that the graph is to fit again.
function Drawn({ nodes, edges, selected, onSelect, height, label, fits }: GraphProps & { fits: number }): ReactNode {
  const flow = useReactFlow();
  const shape = JSON.stringify([nodes.map((node) => node.id), edges.map((edge) => [edge.from, edge.to])]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `shape` stands for the ids and edges.
  const { places, bends } = useMemo(
    () =>
      layoutOf(
        nodes.map((node) => node.id),
        edges,
      ),
    [shape],
  );
  useEffect(() => {
    if (fits > 0) void flow.fitView(FIT);
  }, [fits, flow]);
  const shown: Shown[] = nodes.map((node) => ({
    id: node.id,
    type: "step",
    position: places.get(node.id) ?? { x: 0, y: 0 },
    width: WIDE,
    height: TALL,
    data: { node, isChosen: node.id === selected },
  }));
  return (
    <div style={{ minHeight: height }} className={css.frame}>
      <div className={css.graph}>
        <ReactFlow
          aria-label={label}
          nodes={shown}
          edges={edges.map((edge) => edgeOf(edge, bends.get(edgeId(edge)) ?? []))}
          nodeTypes={TYPES}
          edgeTypes={EDGES}
          onNodeClick={(_, node) => onSelect(node.id)}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          elementsSelectable={false}
          zoomOnScroll={false}
          panOnScroll={false}
          preventScrolling={false}
          minZoom={FIT.minZoom}
          maxZoom={1.5}
          fitView
          fitViewOptions={FIT}
          onlyRenderVisibleElements={nodes.length > MANY}
          proOptions={{ hideAttribution: true }}
        >
          {nodes.length > MANY && (
            <MiniMap
              pannable
              zoomable
              ariaLabel="The whole graph"
              className={css.map}
              nodeColor={(node) => `var(--${markOf((node as Shown).data.node.status).colour})`}
            />
          )}
        </ReactFlow>
      </div>
    </div>
  );
}

function edgeOf({ from, to, isCritical = false, isDashed = false, label }: GraphEdge, bends: readonly Place[]): Edge {
  const colour = isCritical ? "var(--ink)" : "var(--line-2)";
  return {
    id: edgeId({ from, to }),
    type: "line",
    data: { bends },
    source: from,
    target: to,
    label,
    style: { stroke: colour, strokeWidth: isCritical ? 2 : 1.5, strokeDasharray: isDashed ? "3 3" : undefined },
    markerEnd: {
      type: MarkerType.ArrowClosed,
      color: colour,
      width: isCritical ? 10 : 13,
      height: isCritical ? 10 : 13,
    },
    zIndex: isCritical ? 1 : 0,
  };
}
