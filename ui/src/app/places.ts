import type { IconName } from "../components/sprite";
import { DEFAULT_RANGE } from "../hooks/useTimeRange";

export interface Place {
  label: string;
  href: string;
  icon: IconName;
  // The second key after g.
  key?: string;
  // Whether its page has the shared time range.
  hasRange?: boolean;
}

export const GROUPS: readonly { label: string; places: readonly Place[] }[] = [
  {
    label: "Now",
    places: [
      { label: "Overview", href: "/", icon: "overview", key: "o", hasRange: true },
      { label: "Alerts", href: "/alerts", icon: "bell", key: "a" },
    ],
  },
  {
    label: "Work",
    places: [
      { label: "Executions", href: "/executions", icon: "list", key: "e", hasRange: true },
      { label: "Runs", href: "/runs", icon: "graph", key: "r" },
      { label: "Dead letters", href: "/dead", icon: "letter", key: "d" },
    ],
  },
  {
    label: "Plan",
    places: [
      { label: "Jobs", href: "/jobs", icon: "braces", key: "j" },
      { label: "Schedules", href: "/schedules", icon: "calendar", key: "s" },
      { label: "Events", href: "/events", icon: "bolt" },
    ],
  },
  {
    label: "Capacity",
    places: [
      { label: "Queues", href: "/queues", icon: "layers", key: "q", hasRange: true },
      { label: "Workers", href: "/workers", icon: "chip", key: "w", hasRange: true },
    ],
  },
];

export const SETTINGS: Place = { label: "Settings", href: "/settings", icon: "gear" };
export const PLACES: readonly Place[] = [...GROUPS.flatMap((group) => group.places), SETTINGS];

// Pages with a time range keep the one that is chosen.
export function addressOf(place: Place, since: string): string {
  return place.hasRange && since !== DEFAULT_RANGE ? `${place.href}?since=${encodeURIComponent(since)}` : place.href;
}

export function isAt(place: Place, path: string): boolean {
  return place.href === "/" ? path === "/" : path === place.href || path.startsWith(`${place.href}/`);
}
