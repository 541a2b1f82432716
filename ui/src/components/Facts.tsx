import type { ReactNode } from "react";
import css from "./Facts.module.css";

// Names and values of one thing. A null value leaves the row out.
export function Facts({ of }: { of: Record<string, ReactNode> }) {
  return (
    <dl className={css.facts}>
      {Object.entries(of)
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export function Tag({ children }: { children: ReactNode }) {
  return <span className={css.tag}>{children}</span>;
}

export function Kbd({ children }: { children: ReactNode }) {
  return <kbd className={css.kbd}>{children}</kbd>;
}
