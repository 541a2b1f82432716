import type { ReactNode } from "react";
import { Button } from "./Button";
import css from "./Pager.module.css";

interface Props {
  // "18 shown", and what the keys do.
  children?: ReactNode;
  newer?: () => void;
  older?: () => void;
}

// The foot of a list: one page forward or back. There are no page numbers, because there is no total.
export function Pager({ children, newer, older }: Props) {
  return (
    <div className={css.pager}>
      <span className="sm d2 gr">{children}</span>
      <Button icon="left" disabled={newer === undefined} onClick={newer}>
        Newer
      </Button>
      <Button icon="right" disabled={older === undefined} onClick={older}>
        Older
      </Button>
    </div>
  );
}
