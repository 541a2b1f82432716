import type { Answer } from "../../api/types";

export type Execution = Answer<"/executions/{execution}">;
export type EndedAttempt = Execution["attempts"][number];

// An attempt that has ended, or the one that runs.
export interface Attempt {
  number: number;
  fence: number;
  status: string;
  reason: string | null;
  worker: string | null;
  startedAt: string | null;
  completedAt: string | null;
  error: ErrorText | null;
  usage: EndedAttempt["usage"];
}

export interface ErrorText {
  type: string;
  message: string;
  traceback: string;
  // The lines around frames of own code; first is the number of the first of them.
  source: readonly Excerpt[];
}

export interface Excerpt {
  file: string;
  line: number;
  first: number;
  lines: readonly string[];
}

// Oldest first, with the one that runs at the end.
export function attemptsOf(execution: Execution, ended: readonly EndedAttempt[]): Attempt[] {
  const found: Attempt[] = ended.map((one) => ({
    number: one.attempt,
    fence: one.fence,
    status: one.status,
    reason: one.reason,
    worker: one.worker,
    startedAt: one.startedAt,
    completedAt: one.completedAt,
    error: errorOf(one.error),
    usage: one.usage,
  }));
  const last = found.at(-1)?.fence ?? 0;
  if (execution.status === "running" && execution.fence > last)
    found.push({
      number: Math.max(1, execution.attemptCount),
      fence: execution.fence,
      status: "running",
      reason: null,
      worker: execution.worker,
      startedAt: execution.startedAt,
      completedAt: null,
      error: null,
      usage: null,
    });
  return found;
}

export function errorOf(value: unknown): ErrorText | null {
  if (typeof value !== "object" || value === null) return null;
  const { type, message, traceback, source } = value as Record<string, unknown>;
  return {
    type: textOf(type),
    message: textOf(message),
    traceback: textOf(traceback),
    source: Array.isArray(source) ? source : [],
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

// "APIConnectionError" of "stripe.APIConnectionError".
export function className(type: string): string {
  return type.slice(type.lastIndexOf(".") + 1);
}
