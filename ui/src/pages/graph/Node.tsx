import { StateIcon } from "../../components/StateIcon";
import { markOf } from "../../lib/states";
import css from "./Graph.module.css";
import type { Place } from "./layout";
import type { GraphNode } from "./types";

interface Props {
  node: GraphNode;
  place: Place;
  isChosen: boolean;
  // Too small for words: the state fills the box.
  isFar: boolean;
  onSelect: (id: string) => void;
}

// A box of one size: icon, name, one line.
export function Node({ node, place, isChosen, isFar, onSelect }: Props) {
  const colour = node.isDashed ? "edge" : markOf(node.status).colour;
  const classes = [
    css.node,
    node.isDashed ? css.dashed : "",
    isChosen ? css.chosen : "",
    node.isDimmed ? css.dimmed : "",
  ];
  return (
    <button
      type="button"
      className={classes.join(" ")}
      style={{
        left: place.x,
        top: place.y,
        borderColor: `var(--${colour})`,
        background: isFar && !node.isDashed ? `var(--${colour})` : undefined,
      }}
      aria-pressed={isChosen}
      title={`${node.title}: ${node.word}, ${node.detail}`}
      onClick={() => onSelect(node.id)}
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
  );
}
