import type { ReactNode } from "react";
import { Icon } from "./Icon";
import css from "./WhyLadder.module.css";

export interface Rung {
  code: string;
  // Null: not checked, because an earlier one fails.
  holds: boolean | null;
  // "Queue not paused"
  title: string;
  // What was found, in words.
  text: ReactNode;
  // How a failing rung looks: trouble, what a person has paused, or what only waits for its time.
  look?: "failed" | "paused" | "waits";
  // For the failing rung: nearest workers, who paused it, who holds the limit.
  evidence?: ReactNode;
}

const MARKS = {
  holds: { icon: "tick", colour: "c-success", word: "holds" },
  failed: { icon: "octagon-cross", colour: "c-failed", word: "fails" },
  paused: { icon: "pause", colour: "c-warn", word: "fails" },
  waits: { icon: "clock", colour: "c-rest", word: "not yet" },
  unchecked: { icon: "dash", colour: "c-rest", word: "not checked" },
} as const;

function lookOf({ holds, look = "failed" }: Rung): keyof typeof MARKS {
  return holds === null ? "unchecked" : holds ? "holds" : look;
}

// The checks that a claim makes, in order; the first that fails is the reason.
export function WhyLadder({ rungs }: { rungs: readonly Rung[] }) {
  return (
    <ol className={css.ladder}>
      {rungs.map((rung, index) => {
        const look = lookOf(rung);
        const mark = MARKS[look];
        return (
          <li key={rung.code} className={look === "unchecked" ? "d3" : (css[look] ?? "")}>
            <span className="num d3">{index + 1}</span>
            <span>
              <Icon name={mark.icon} className={mark.colour} />
              <span className="unseen">{mark.word}: </span>
            </span>
            <span className={rung.holds === false ? css.title : ""}>{rung.title}</span>
            <div className="d2">
              {rung.text}
              {rung.evidence}
            </div>
          </li>
        );
      })}
    </ol>
  );
}
