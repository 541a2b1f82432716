import type { ReactNode } from "react";
import { count } from "../lib/format";
import css from "./BulkBar.module.css";
import { Button } from "./Button";

interface Props {
  selected: number;
  // "of 54,201"; and a way to take all that match: <button>Select all 447 failed</button>.
  more?: ReactNode;
  // Each button carries the number that it applies to: "Replay 4…".
  children: ReactNode;
  onClear: () => void;
}

export function BulkBar({ selected, more, children, onClear }: Props) {
  if (selected === 0) return null;
  return (
    <section className={`inverted ${css.bar}`} aria-label="Selected rows">
      <b className="nw">{count(selected)} selected</b>
      <span className="sm gr row">{more}</span>
      {children}
      <Button kind="quiet" icon="cross" aria-label="Clear the selection" onClick={onClear} />
    </section>
  );
}
