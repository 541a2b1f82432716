import type { ReactNode } from "react";
import { Button } from "./Button";
import css from "./Pager.module.css";

interface Props {
  // "18 shown", and what the keys do.
  children?: ReactNode;
  newer?: () => void;
  older?: () => void;
  // Of the two buttons, for a list that is not in the order of time.
  words?: readonly [string, string];
}

// The foot of a list: one page forward or back. There are no page numbers, because there is no total.
export function Pager({ children, newer, older, words = ["Newer", "Older"] }: Props) {
  return (
    <div className={css.pager}>
      <span className="sm d2 gr">{children}</span>
      <Button icon="left" disabled={newer === undefined} onClick={newer}>
        {words[0]}
      </Button>
      <Button icon="right" disabled={older === undefined} onClick={older}>
        {words[1]}
      </Button>
    </div>
  );
}
