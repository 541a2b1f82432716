import type { ReactNode } from "react";
import css from "./Verdict.module.css";

interface Props {
  // One sentence that a person would say.
  text: ReactNode;
  // The numbers that support it.
  support?: ReactNode;
  actions?: ReactNode;
}

// The head of a page. The h1 of the page is the title in the top bar, so this is a paragraph of its size.
export function Verdict({ text, support, actions }: Props) {
  return (
    <div className={css.verdict}>
      <div className="gr">
        <p className={css.text}>{text}</p>
        {support !== undefined && <p className="d2">{support}</p>}
      </div>
      {actions !== undefined && <div className={css.actions}>{actions}</div>}
    </div>
  );
}
