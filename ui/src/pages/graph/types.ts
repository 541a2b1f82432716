export interface GraphNode {
  id: string;
  title: string;
  detail: string;
  // The state of an execution, for icon and colour.
  status: string;
  // The run has not come to it: a dashed edge.
  isDashed?: boolean;
  isDimmed?: boolean;
  // Shares of a map by state, as a strip along the lower edge.
  strip?: readonly { share: number; colour: string }[];
  // For screen readers: the state as a word.
  word: string;
}

export interface GraphEdge {
  from: string;
  to: string;
  isCritical?: boolean;
  isDashed?: boolean;
  label?: string;
}

export interface GraphProps {
  nodes: readonly GraphNode[];
  edges: readonly GraphEdge[];
  selected: string | null;
  onSelect: (id: string) => void;
  height: number;
  label: string;
}
