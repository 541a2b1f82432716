import { useEffect, useState } from "react";
import { useMay } from "../api/session";
import { useApi } from "../hooks/useApi";
import { type Choice, choicesOf, filterOf, type Hit, pausableOf } from "./paletteChoices";
import { typedOf } from "./paletteText";

const PAUSE_MS = 120;
const LEAST = 2;
const FIELDS = "executionId,status,job,arguments,errorMessage";

interface Results {
  choices: Choice[];
  // Whether all that was asked has been answered.
  isSettled: boolean;
}

// What the palette offers for a text: each part is fetched by itself, and what has arrived is shown.
export function useResults(given: string): Results {
  const may = useMay();
  const text = useLater(given.trim());
  const typed = typedOf(text);
  const isAsked = typed.words.length >= LEAST;
  const search = useApi("/search", { query: { q: typed.words } }, { enabled: isAsked });
  const hits: readonly Hit[] = isAsked ? (search.data?.items ?? []) : [];
  const filter = filterOf(typed, hits);
  const ids = hits.filter((hit) => hit.kind === "execution").map((hit) => hit.id);
  const timed = filter === null ? {} : { ...asQuery(filter), createdFrom: typed.since };
  const isNarrowed = filter !== null && isLength(typed.since);
  const counts = useApi("/counts", { query: { ...timed, of: "executions" } }, { enabled: isNarrowed, keep: false });
  const wanted = ids.length > 0 ? { id: ids.slice(0, 3) } : timed;
  const executions = useApi(
    "/executions",
    { query: { ...wanted, limit: 3, fields: FIELDS } },
    { enabled: ids.length > 0 || isNarrowed, keep: false },
  );
  const choices = choicesOf({
    text,
    typed,
    hits,
    executions: executions.data?.items ?? [],
    count: counts.data,
    isPaused: useIsPaused(pausableOf(hits)),
    may,
  });
  const isSettled = text === given.trim() && (!isAsked || !search.isFetching);
  return { choices, isSettled };
}

function useIsPaused(hit: Hit | undefined): boolean | undefined {
  const id = hit?.id ?? "";
  const job = useApi("/jobs/{job}", { path: { job: id } }, { enabled: hit?.kind === "job", keep: false });
  const queue = useApi("/queues/{queue}", { path: { queue: id } }, { enabled: hit?.kind === "queue", keep: false });
  const schedule = useApi(
    "/schedules/{schedule}",
    { path: { schedule: id } },
    { enabled: hit?.kind === "schedule", keep: false },
  );
  const found = { job: job.data, queue: queue.data, schedule: schedule.data }[hit?.kind ?? ""];
  return found === undefined ? undefined : found.paused !== null;
}

function asQuery(filter: Record<string, string[]>): Record<string, unknown> {
  const { error, ...others } = filter;
  return error === undefined ? others : { ...others, error: error.join(" ") };
}

function isLength(since: string): boolean {
  return /^\d+[smhd]$/.test(since);
}

// The text once the typing has paused, so that not every key asks the server.
function useLater(text: string): string {
  const [later, setLater] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setLater(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return later;
}
