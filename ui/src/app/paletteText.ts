// What was typed into the palette: filters such as job:charge, a state, and the words that are left.
import { DEFAULT_RANGE } from "../hooks/useTimeRange";
import { markOf, STATUSES } from "../lib/states";

export interface Typed {
  // Parameters of the page Executions, under its own names.
  filter: Record<string, string[]>;
  since: string;
  // For the search by name and id.
  words: string;
  // Whether a filter was written as one, and is not only guessed from a word.
  isFilter: boolean;
}

const NAMES: Record<string, string> = {
  job: "job",
  state: "status",
  status: "status",
  queue: "queue",
  tag: "tag",
  error: "error",
  app: "app",
};
const TOKEN = /(\w+):("[^"]*"|\S+)/g;
const LEAST_OF_STATE = 4;

export function typedOf(text: string): Typed {
  const filter: Record<string, string[]> = {};
  let since = DEFAULT_RANGE;
  let isFilter = false;
  const rest = text.replace(TOKEN, (whole, name: string, quoted: string) => {
    const value = quoted.replaceAll('"', "");
    const known = NAMES[name.toLowerCase()];
    if (name.toLowerCase() === "since") since = value;
    else if (known === undefined) return whole;
    else filter[known] = [...(filter[known] ?? []), known === "status" ? (stateOf(value, 1) ?? value) : value];
    isFilter = true;
    return "";
  });
  const words: string[] = [];
  for (const word of rest.split(/\s+/).filter((one) => one !== "")) {
    const state = words.length > 0 || isFilter ? stateOf(word, LEAST_OF_STATE) : undefined;
    if (state === undefined) words.push(word);
    else filter.status = [...(filter.status ?? []), state];
  }
  return { filter, since, words: words.join(" "), isFilter };
}

function stateOf(word: string, least: number): string | undefined {
  const start = word.toLowerCase();
  return start.length < least ? undefined : STATUSES.find((status) => status.startsWith(start));
}

// The address of Executions with these filters.
export function addressOf(filter: Record<string, string[]>, since: string): string {
  const parameters = new URLSearchParams();
  for (const [name, values] of Object.entries(filter)) for (const value of values) parameters.append(name, value);
  if (since !== DEFAULT_RANGE) parameters.set("since", since);
  return `/executions?${parameters.toString()}`;
}

// "charge, failed"
export function filterWords(filter: Record<string, string[]>): string {
  const words = (name: string, value: string) => (name === "status" ? markOf(value).word.toLowerCase() : value);
  return Object.entries(filter)
    .flatMap(([name, values]) => values.map((value) => words(name, value)))
    .join(", ");
}
