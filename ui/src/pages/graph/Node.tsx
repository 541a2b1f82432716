import { type Node as FlowNode, Handle, type NodeProps, Position, useStore } from "@xyflow/react";
import { StateIcon } from "../../components/StateIcon";
import { markOf } from "../../lib/states";
import css from "./Graph.module.css";
import type { GraphNode } from "./types";

export type Shown = FlowNode<{ node: GraphNode; isChosen: boolean }, "step">;

const FAR = 0.5;

// A box of one size: icon, name, one line. From afar, where the words cannot be read, the state fills it.
export function Node({ data: { node, isChosen } }: NodeProps<Shown>) {
  const isFar = useStore((state) => state.transform[2] < FAR);
  const colour = node.isDashed ? "line-2" : markOf(node.status).colour;
  const classes = [
    css.node,
    node.isDashed ? css.dashed : "",
    isChosen ? css.chosen : "",
    node.isDimmed ? css.dimmed : "",
  ];
  return (
    <>
      <Handle type="target" position={Position.Left} className={css.handle} isConnectable={false} />
      <button
        type="button"
        className={classes.join(" ")}
        style={{
          borderColor: `var(--${colour})`,
          background: isFar && !node.isDashed ? `var(--${colour})` : undefined,
        }}
        aria-pressed={isChosen}
        title={`${node.title}: ${node.word}, ${node.detail}`}
      >
        <StateIcon status={node.status} />
        <span className={css.words}>
          <b className="el">{node.title}</b>
          <span className="xs d3 el">{node.detail}</span>
        </span>
        <span className="unseen">{node.word}</span>
        {node.strip !== undefined && (
          <span className={css.strip}>
            {node.strip.map((part) => (
              <i key={part.colour} style={{ width: `${part.share * 100}%`, background: `var(--${part.colour})` }} />
            ))}
          </span>
        )}
      </button>
      <Handle type="source" position={Position.Right} className={css.handle} isConnectable={false} />
    </>
  );
}
