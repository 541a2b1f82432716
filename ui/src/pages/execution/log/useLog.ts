import { useEffect, useState } from "react";
import { held } from "../../../api/live";
import { type Problem, problemOf } from "../../../api/problem";
import type { LogLine } from "./lines";
import { earlierThan, followFrom, TAIL, tailOf } from "./read";

interface Log {
  lines: readonly LogLine[];
  // Lines that were put before those that were shown, all in all.
  isComplete: boolean;
  isLoaded: boolean;
  problem: Problem | null;
  retry: () => void;
}

const TOGETHER_MS = 100;
const RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 15_000;
const NONE: { lines: readonly LogLine[]; isComplete: boolean; isLoaded: boolean } = {
  lines: [],
  isComplete: false,
  isLoaded: false,
};

// The whole log: its end at once, what is before it when it has been read, and what is written from then on.
export function useLog(id: string, isOpen: boolean): Log {
  const [log, setLog] = useState(NONE);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [round, setRound] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a round reads again.
  useEffect(() => {
    const abort = new AbortController();
    setLog(NONE);
    setProblem(null);
    readAll(id, isOpen, abort.signal, setLog).catch((error: unknown) => {
      if (!abort.signal.aborted) setProblem(problemOf(error));
    });
    return () => abort.abort();
  }, [id, round]);
  return { ...log, problem, retry: () => setRound(round + 1) };
}

type Show = (log: typeof NONE) => void;

async function readAll(id: string, isOpen: boolean, signal: AbortSignal, show: Show): Promise<void> {
  const page = await tailOf(id, signal);
  let earlier: readonly LogLine[] = [];
  const later: LogLine[] = [...page.items];
  let isComplete = page.items.length < TAIL;
  const showNow = () => {
    if (!signal.aborted) show({ lines: [...earlier, ...later], isComplete, isLoaded: true });
  };
  showNow();
  const first = page.items[0];
  const reading =
    isComplete || first === undefined
      ? Promise.resolve()
      : earlierThan(id, first, signal).then((found) => {
          earlier = found;
          isComplete = true;
          showNow();
        });
  const following = isOpen && !page.isOver ? follow(id, later, signal, showNow) : Promise.resolve();
  await Promise.all([reading, following]);
}

async function follow(id: string, lines: LogLine[], signal: AbortSignal, showNow: () => void): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    timer = undefined;
    // While the reader holds the page, lines are kept back and not lost.
    if (held.get()) soon();
    else showNow();
  };
  const soon = () => {
    if (timer === undefined) timer = setTimeout(flush, held.get() ? 500 : TOGETHER_MS);
  };
  let waitMs = RETRY_MS;
  while (!signal.aborted) {
    const end = await followFrom(id, lines.at(-1), signal, (line) => {
      lines.push(line);
      waitMs = RETRY_MS;
      soon();
    }).catch(() => "lost" as const);
    if (end === "over") break;
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    waitMs = Math.min(waitMs * 2, LONGEST_RETRY_MS);
  }
}
