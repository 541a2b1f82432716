import { Link, useLocation } from "wouter";
import { useMe } from "../api/session";
import { Icon } from "../components/Icon";
import { useTimeRange } from "../hooks/useTimeRange";
import { Logo } from "./Logo";
import { NamespaceSwitch } from "./NamespaceSwitch";
import { addressOf, GROUPS, isAt, type Place, SETTINGS } from "./places";
import css from "./Rail.module.css";
import { UserMenu } from "./UserMenu";
import { useBadges } from "./useBadges";

export function Rail() {
  const { data: me } = useMe();
  const badges = useBadges();
  return (
    <nav className={css.rail} aria-label="Main">
      <Link href="/" className={css.brand}>
        <Logo />
        <span className={css.word}>Rota</span>
      </Link>
      <NamespaceSwitch />
      {GROUPS.map((group) => (
        <div key={group.label}>
          <div className={css.group}>{group.label}</div>
          {group.places.map((place) => (
            <RailLink key={place.href} place={place} badge={badges[place.href]} />
          ))}
        </div>
      ))}
      <div className={css.foot}>
        <RailLink place={SETTINGS} isSmall />
        <UserMenu />
        <span className={css.word}>{[me?.serverVersion, databaseOf(me)].filter(Boolean).join(" · ")}</span>
      </div>
    </nav>
  );
}

// The kind of database is a later member of /me, which an older server does not send.
function databaseOf(me: object | undefined): string {
  return me !== undefined && "database" in me && typeof me.database === "string" ? me.database : "";
}

interface LinkProps {
  place: Place;
  badge?: { text: string; isBad: boolean };
  isSmall?: boolean;
}

function RailLink({ place, badge, isSmall = false }: LinkProps) {
  const [path] = useLocation();
  const { since } = useTimeRange();
  const isOn = isAt(place, path);
  return (
    <Link
      href={addressOf(place, since)}
      className={`${isOn ? css.on : ""} ${isSmall ? css.small : ""}`}
      aria-current={isOn ? "page" : undefined}
      title={place.label}
    >
      <Icon name={place.icon} size={isSmall ? 14 : 16} />
      <span className={css.word}>{place.label}</span>
      {badge !== undefined && <span className={badge.isBad ? css.bad : css.number}>{badge.text}</span>}
    </Link>
  );
}
