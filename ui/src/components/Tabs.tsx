import type { ReactNode } from "react";
import { Link } from "wouter";
import css from "./Tabs.module.css";

interface Props {
  label: string;
  value: string;
  tabs: readonly { value: string; label: ReactNode; href: string }[];
}

// Tabs are links, so each has an address, a place in the history, and can be opened in another tab of the browser.
export function Tabs({ label, value, tabs }: Props) {
  return (
    <nav className={css.tabs} aria-label={label}>
      {tabs.map((tab) => (
        <Link
          key={tab.value}
          href={tab.href}
          className={tab.value === value ? css.on : ""}
          aria-current={tab.value === value ? "page" : undefined}
        >
          {tab.label}
        </Link>
      ))}
    </nav>
  );
}
