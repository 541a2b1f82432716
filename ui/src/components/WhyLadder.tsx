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
  // For the failing rung: nearest workers, who paused it, who holds the limit.
  evidence?: ReactNode;
}

const MARKS = {
  true: { icon: "tick", colour: "c-success", word: "holds" },
  false: { icon: "octagon-cross", colour: "c-failed", word: "fails" },
  null: { icon: "dash", colour: "c-rest", word: "not checked" },
} as const;

// The checks that a claim makes, in order; the first that fails is the reason.
export function WhyLadder({ rungs }: { rungs: readonly Rung[] }) {
  return (
    <ol className={css.ladder}>
      {rungs.map((rung, index) => {
        const mark = MARKS[`${rung.holds}`];
        return (
          <li key={rung.code} className={rung.holds === false ? css.failing : rung.holds === null ? "d3" : ""}>
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
