import { useState } from "react";
import { Link, useLocation } from "wouter";
import { Dialog } from "../components/Dialog";
import { Icon } from "../components/Icon";
import type { IconName } from "../components/sprite";
import css from "./BottomBar.module.css";
import { NamespaceSwitch } from "./NamespaceSwitch";
import { openPalette } from "./palette";
import { PLACES } from "./places";
import { UserMenu } from "./UserMenu";
import { useBadges } from "./useBadges";
import { ZoneSwitch } from "./ZoneSwitch";

const TABS: readonly { label: string; href: string; icon: IconName; isOn: RegExp }[] = [
  { label: "Overview", href: "/", icon: "overview", isOn: /^\/$/ },
  { label: "Work", href: "/executions", icon: "list", isOn: /^\/(executions|runs)/ },
  { label: "Dead letters", href: "/dead", icon: "letter", isOn: /^\/dead/ },
];

// On a phone, in place of the rail.
export function BottomBar() {
  const [path] = useLocation();
  const [isOpen, setOpen] = useState(false);
  const badges = useBadges();
  return (
    <nav className={css.bar} aria-label="Main, on a phone">
      {TABS.map((tab) => {
        const isOn = tab.isOn.test(path);
        return (
          <Link key={tab.href} href={tab.href} className={isOn ? css.on : ""} aria-current={isOn ? "page" : undefined}>
            <Icon name={tab.icon} size={18} />
            {tab.label}
            {badges[tab.href] !== undefined && <span className={css.bad}>{badges[tab.href]?.text}</span>}
          </Link>
        );
      })}
      <button type="button" onClick={openPalette}>
        <Icon name="search" size={18} />
        Find
      </button>
      <button type="button" onClick={() => setOpen(true)}>
        <Icon name="dots" size={18} />
        More
      </button>
      {isOpen && (
        <Dialog title="Pages" onClose={() => setOpen(false)}>
          <NamespaceSwitch />
          <div className={css.more}>
            {PLACES.map((place) => (
              <Link key={place.href} href={place.href} onClick={() => setOpen(false)}>
                <Icon name={place.icon} size={16} />
                {place.label}
              </Link>
            ))}
          </div>
          <div className="row">
            <UserMenu />
            <ZoneSwitch />
          </div>
        </Dialog>
      )}
    </nav>
  );
}
