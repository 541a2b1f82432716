import type { ReactNode } from "react";
import css from "./Panel.module.css";

interface Props {
  title?: ReactNode;
  // A few words beside the title.
  note?: ReactNode;
  // Buttons and links at the right end of the head.
  right?: ReactNode;
  // Without padding, for tables and lists.
  isFlush?: boolean;
  children: ReactNode;
}

export function Panel({ title, note, right, isFlush = false, children }: Props) {
  return (
    <section className={css.panel}>
      {title !== undefined && (
        <header className={css.head}>
          <h2>{title}</h2>
          {note !== undefined && <span className={`sm d3 ${css.note}`}>{note}</span>}
          {right !== undefined && <span className={css.right}>{right}</span>}
        </header>
      )}
      <div className={isFlush ? "" : css.body}>{children}</div>
    </section>
  );
}

// A panel with a coloured edge: the verdict of a page about one thing, or a warning.
export function Callout({ colour, children }: { colour: string; children: ReactNode }) {
  return (
    <section className={css.callout} style={{ borderLeftColor: `var(--${colour})` }}>
      {children}
    </section>
  );
}
