import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { Kbd } from "../components/Facts";
import { Icon } from "../components/Icon";
import { Loading } from "../components/States";
import { useKeys } from "../hooks/useKeys";
import { LiveIndicator } from "./LiveIndicator";
import { LiveStrip } from "./LiveStrip";
import css from "./Page.module.css";
import { openPalette } from "./palette";
import { useVerdict } from "./useVerdict";
import { ZoneSwitch } from "./ZoneSwitch";

interface Props {
  // The h1: the name of the page, or of the thing that it is about.
  title: ReactNode;
  // The way up: { label: "Executions", href: "/executions" }.
  up?: { label: string; href: string };
  // Between title and Find: the time range, or previous and next.
  context?: ReactNode;
  // One sentence. It is the title of the browser's tab, and is read out when it changes.
  verdict?: string;
  // Only the frame.
  isLoading?: boolean;
  // On a phone, a bar with the actions of the page above the bottom bar.
  phoneActions?: ReactNode;
  children?: ReactNode;
}

// The frame of every page: top bar and body.
export function Page({ title, up, context, verdict, isLoading = false, phoneActions, children }: Props) {
  const [, go] = useLocation();
  useKeys(up === undefined ? {} : { Escape: { does: `up to ${up.label}`, run: () => go(up.href) } });
  useVerdict(verdict);
  return (
    <main className={css.main}>
      <header className={css.top}>
        {up !== undefined && (
          <>
            <Link href={up.href} className={`${css.up} only-phone`} aria-label={`Up to ${up.label}`}>
              <Icon name="left" size={18} />
            </Link>
            <span className={`d3 not-phone nw ${css.crumb}`}>
              <Link href={up.href} className="ln">
                {up.label}
              </Link>{" "}
              /
            </span>
          </>
        )}
        <h1 className="el">{title}</h1>
        <span className="gr" />
        {context}
        <button type="button" className={css.find} onClick={openPalette}>
          <Icon name="search" />
          <span className="gr">Find anything</span>
          <Kbd>Ctrl K</Kbd>
        </button>
        <LiveIndicator />
        <span className="not-phone">
          <ZoneSwitch />
        </span>
      </header>
      <LiveStrip />
      <div className={css.body}>{isLoading ? <Loading /> : children}</div>
      {phoneActions !== undefined && <div className={`only-phone ${css.phoneActions}`}>{phoneActions}</div>}
    </main>
  );
}
