import dagre from "@dagrejs/dagre";
import type { GraphEdge } from "./types";

export const WIDE = 164;
export const TALL = 46;

export interface Place {
  x: number;
  y: number;
}

export interface Layout {
  places: Map<string, Place>;
  // By "from → to": where a long edge passes between the nodes of the ranks that it crosses.
  bends: Map<string, Place[]>;
  size: { width: number; height: number };
}

export function edgeId({ from, to }: { from: string; to: string }): string {
  return `${from} → ${to}`;
}

// Places from left to right. They depend on the shape of the graph alone, so a change of states moves nothing.
export function layoutOf(ids: readonly string[], edges: readonly GraphEdge[]): Layout {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 30, ranksep: 48, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of ids) graph.setNode(id, { width: WIDE, height: TALL });
  for (const { from, to } of edges) graph.setEdge(from, to);
  dagre.layout(graph);
  const centre = (id: string) => graph.node(id) as Place;
  const places = new Map(ids.map((id) => [id, { x: centre(id).x - WIDE / 2, y: centre(id).y - TALL / 2 }]));
  const bends = new Map(
    edges.map((edge) => {
      const points = (graph.edge(edge.from, edge.to) as { points: Place[] }).points.slice(1, -1);
      return [edgeId(edge), points.length > 1 ? points : []];
    }),
  );
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { places, bends, size: { width, height } };
}

// A line that leaves and enters nodes level, through the bends.
export function pathThrough(points: readonly Place[]): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  let at = first;
  let path = `M${at.x} ${at.y}`;
  for (const next of rest) {
    const middle = (at.x + next.x) / 2;
    path += `C${middle} ${at.y} ${middle} ${next.y} ${next.x} ${next.y}`;
    at = next;
  }
  return path;
}
