import type { Answer, Item } from "../api/types";
import { type IconName, isIcon } from "../components/sprite";
import { rangeWords } from "../hooks/useTimeRange";
import { argumentsInLine, capped } from "../lib/format";
import { markOf } from "../lib/states";
import { addressOf, filterWords, type Typed } from "./paletteText";
import { PLACES } from "./places";

export type Kind = "Go to" | "Executions" | "Do";

// What a choice does besides leading somewhere: it asks first.
export interface Ask {
  verb: "pause" | "resume";
  kind: "job" | "queue" | "schedule";
  id: string;
  name: string;
}

export interface Choice {
  key: string;
  kind: Kind;
  // What it is: "Job", "Pause queue".
  word: string;
  name: string;
  note: string;
  icon: IconName;
  colour?: string;
  id?: string;
  href?: string;
  ask?: Ask;
}

export type Hit = Item<"/search">;
export type Found = Item<"/executions">;

interface Known {
  text: string;
  typed: Typed;
  hits: readonly Hit[];
  executions: readonly Found[];
  count?: Answer<"/counts">;
  // Of the first thing that was found and can be paused: whether it is.
  isPaused?: boolean;
  may: (right: "operate" | "enqueue") => boolean;
}

const MOST = 9;
const MOST_EXECUTIONS = 3;
const MOST_DONE = 2;

// By kind, nine at most: executions and actions keep a place beside what leads to pages.
export function choicesOf(known: Known): Choice[] {
  const executions = executionsOf(known).slice(0, MOST_EXECUTIONS);
  const done = actionsOf(known).slice(0, MOST_DONE);
  const places = placesOf(known).slice(0, MOST - executions.length - done.length);
  return [...places, ...executions, ...done];
}

function placesOf({ text, typed, hits, count }: Known): Choice[] {
  const named = hits.filter((hit) => hit.kind !== "execution");
  const job = named.find((hit) => hit.kind === "job");
  const filter = filterOf(typed, hits);
  const found: Choice[] = [];
  if (filter !== null)
    found.push({
      key: "filter",
      kind: "Go to",
      word: "Executions:",
      name: filterWords(filter),
      note: `${rangeWords(typed.since)}${count === undefined ? "" : ` · ${capped(count.count, count.isCapped)}`}`,
      icon: filter.status?.includes("failed") ? "octagon-cross" : "list",
      colour: filter.status?.includes("failed") ? "failed" : undefined,
      href: addressOf(filter, typed.since),
    });
  found.push(...named.map(placeOf));
  if (job !== undefined)
    found.push({
      key: "dead",
      kind: "Go to",
      word: "Dead letters of",
      name: job.name ?? "",
      note: "",
      icon: "letter",
      href: `/dead?job=${encodeURIComponent(job.name ?? "")}`,
    });
  const wanted = text.toLowerCase();
  const pages = PLACES.filter((place) => place.label.toLowerCase().includes(wanted));
  found.push(
    ...pages.map((place) => ({
      key: place.href,
      kind: "Go to" as const,
      word: "",
      name: place.label,
      note: "",
      icon: place.icon,
      href: place.href,
    })),
  );
  return found;
}

// The filter that was typed; or a state together with a job that was found: "charge fail".
export function filterOf(typed: Typed, hits: readonly Hit[]): Record<string, string[]> | null {
  const { filter, isFilter, words } = typed;
  if (isFilter) return Object.keys(filter).length === 0 && words === "" ? null : filter;
  const job = hits.find((hit) => hit.kind === "job" && hit.name?.toLowerCase().startsWith(words.toLowerCase()));
  if (job === undefined || words === "") return null;
  return { job: [job.name ?? ""], ...filter };
}

const PAGES: Record<string, { icon: IconName; href: (hit: Hit) => string }> = {
  job: { icon: "braces", href: ({ app, name }) => `/jobs/${part(app)}/${part(name)}` },
  workflow: { icon: "graph", href: ({ name }) => `/runs?workflow=${part(name)}` },
  queue: { icon: "layers", href: ({ name }) => `/queues/${part(name)}` },
  schedule: { icon: "calendar", href: ({ app, name }) => `/schedules?of=${part(`${app}/${name}`)}` },
  worker: { icon: "chip", href: ({ id }) => `/workers/${id}` },
};

function part(text: string | null): string {
  return encodeURIComponent(text ?? "");
}

function placeOf(hit: Hit): Choice {
  const page = PAGES[hit.kind];
  return {
    key: `${hit.kind} ${hit.id}`,
    kind: "Go to",
    word: hit.kind.charAt(0).toUpperCase() + hit.kind.slice(1),
    name: hit.name ?? "",
    note: hit.app ?? "",
    icon: page?.icon ?? "dash",
    href: page?.href(hit) ?? "/",
  };
}

function executionsOf({ executions }: Known): Choice[] {
  return executions.map((found) => {
    const mark = markOf(found.status ?? "");
    const isLoud = found.status !== "success";
    return {
      key: found.executionId ?? "",
      kind: "Executions",
      word: "",
      name: found.job ?? "",
      note: [
        argumentsInLine(found.arguments as Record<string, unknown>),
        found.errorMessage ?? mark.word.toLowerCase(),
      ].join(" · "),
      icon: isIcon(mark.icon) ? mark.icon : "dash",
      colour: isLoud ? mark.colour : "success",
      id: found.executionId,
      href: `/executions/${found.executionId}`,
    };
  });
}

// The first thing that was found by name and can be paused.
export function pausableOf(hits: readonly Hit[]): Hit | undefined {
  return hits.find((hit) => hit.kind === "job" || hit.kind === "queue" || hit.kind === "schedule");
}

function actionsOf({ hits, isPaused, may }: Known): Choice[] {
  const hit = pausableOf(hits);
  const found: Choice[] = [];
  if (hit !== undefined && isPaused !== undefined && may("operate")) {
    const kind = hit.kind as Ask["kind"];
    const verb = isPaused ? "resume" : "pause";
    found.push({
      key: `${verb} ${hit.id}`,
      kind: "Do",
      word: `${isPaused ? "Resume" : "Pause"} ${kind}`,
      name: `${hit.name}…`,
      note: isPaused ? "" : "asks for a note",
      icon: isPaused ? "play" : "pause",
      ask: { verb, kind, id: hit.id, name: hit.name ?? "" },
    });
  }
  const job = hits.find((one) => one.kind === "job");
  if (job !== undefined && may("enqueue"))
    found.push({
      key: `run ${job.id}`,
      kind: "Do",
      word: "Run",
      name: `${job.name}…`,
      note: "with a form of its parameters",
      icon: "play",
      href: `/jobs/${part(job.app)}/${part(job.name)}?run=true`,
    });
  return found;
}
