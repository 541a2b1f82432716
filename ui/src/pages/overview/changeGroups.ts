import type { Item } from "../../api/types";
import type { IconName } from "../../components/sprite";

export type Change = Item<"/changes">;

// Changes of one kind that one actor made within the same minute, such as the versions of a deploy. First versions of new
// jobs are apart from those that replace another: these may explain what happens.
export interface ChangeGroup {
  key: string;
  at: string;
  kind: Change["kind"];
  changes: readonly Change[];
}

const NOUNS: Record<Change["kind"], string> = {
  version: "new jobs registered",
  deploy: "deploys applied",
  pause: "pauses",
  resume: "pauses ended",
  drain: "workers asked to drain",
  breaker: "changes of breakers",
  worker_started: "workers started",
  worker_stopped: "workers stopped",
  worker_lost: "workers lost",
  setting: "settings changed",
};
const ICONS: Record<Change["kind"], IconName> = {
  version: "deploy",
  deploy: "deploy",
  pause: "pause",
  resume: "play",
  drain: "chip",
  breaker: "bolt",
  worker_started: "chip",
  worker_stopped: "chip",
  worker_lost: "chip",
  setting: "gear",
};
// They explain little, and a deploy brings many of them, so they are shown only where there is room.
const MINOR: ReadonlySet<Change["kind"]> = new Set(["deploy", "worker_stopped", "setting", "worker_started"]);

// A few of these are named: each may be what a reader looks for.
const NAMED: ReadonlySet<Change["kind"]> = new Set(["pause", "resume", "breaker", "worker_lost"]);
const MOST_NAMED = 3;

export function grouped(changes: readonly Change[]): ChangeGroup[] {
  const groups = new Map<string, Change[]>();
  for (const change of changes) {
    const key = `${change.at.slice(0, 16)} ${change.kind} ${change.actor ?? ""} ${isFirst(change) ? "first" : ""}`;
    groups.set(key, [...(groups.get(key) ?? []), change]);
  }
  return [...groups].map(([key, several]) => ({
    key,
    at: several.at(-1)?.at ?? "",
    kind: several[0]?.kind ?? "setting",
    changes: several,
  }));
}

// The newest ones that tell something, and after them minor ones; newest first, as given.
export function foremost(groups: readonly ChangeGroup[], most: number): ChangeGroup[] {
  const isMinor = ({ kind, changes }: ChangeGroup) => MINOR.has(kind) || changes.every(isFirst);
  const ranked = [...groups.filter((group) => !isMinor(group)), ...groups.filter(isMinor)].slice(0, most);
  return groups.filter((group) => ranked.includes(group));
}

export function wordsOf(group: ChangeGroup): string {
  const [first] = group.changes;
  if (first === undefined) return "";
  const number = group.changes.length;
  if (number === 1) return first.text;
  if (NAMED.has(group.kind) && number <= MOST_NAMED)
    return `${number} ${NOUNS[group.kind]}: ${[...new Set(group.changes.map(({ subject }) => subject.name))].join(", ")}`;
  if (group.kind !== "version" || isFirst(first)) return `${number} ${NOUNS[group.kind]}`;
  return `${first.text} and ${number - 1} other ${number === 2 ? "version" : "versions"}`;
}

function isFirst(change: Change): boolean {
  return change.kind === "version" && change.changeId.endsWith("/1");
}

export function iconOf(kind: Change["kind"]): IconName {
  return ICONS[kind];
}
