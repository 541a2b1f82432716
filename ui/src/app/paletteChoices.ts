import type { Answer } from "../api/types";
import type { IconName } from "../components/sprite";
import { PLACES } from "./places";

export interface Choice {
  kind: string;
  name: string;
  note: string;
  href: string;
  icon: IconName;
  id?: string;
}

const MOST = 9;

export function choicesOf(text: string, found: Answer<"/search"> | undefined): Choice[] {
  const wanted = text.toLowerCase();
  const pages = PLACES.filter((place) => place.label.toLowerCase().includes(wanted)).map((place) => ({
    kind: "Go to",
    name: place.label,
    note: "",
    href: place.href,
    icon: place.icon,
  }));
  return [...(found?.items ?? []).map(choiceOf), ...pages].slice(0, MOST);
}

type Found = NonNullable<Answer<"/search">["items"]>[number];

const ICONS: Record<string, IconName> = {
  execution: "list",
  run: "graph",
  job: "braces",
  workflow: "graph",
  queue: "layers",
  schedule: "calendar",
  worker: "chip",
};

function choiceOf(found: Found): Choice {
  const { kind, id, name, app } = found;
  const href: Record<string, string> = {
    execution: `/executions/${id}`,
    run: `/runs/${id}`,
    job: `/jobs/${app}/${name}`,
    workflow: `/runs?workflow=${name}`,
    queue: `/queues/${name}`,
    schedule: `/schedules?of=${name}`,
    worker: `/workers/${id}`,
  };
  return {
    kind: kind.charAt(0).toUpperCase() + kind.slice(1),
    name: name ?? "",
    note: app ?? "",
    href: href[kind] ?? "/",
    icon: ICONS[kind] ?? "dash",
    id: kind === "execution" || kind === "run" ? id : undefined,
  };
}
