import { change, get } from "../../../api/client";
import { problemOf } from "../../../api/problem";
import type { Answer } from "../../../api/types";
import { changeToast, showToast, type Toast, toasts } from "../../../app/toasts";
import { count } from "../../../lib/format";
import { signal } from "../../../lib/signal";
import { type Outcome, outcomeWords, type Target, type Verb, WORDS } from "./verbs";

type Action = Answer<"/actions/{action}">;

interface Preview {
  count: number;
  isCapped: boolean;
}

// The actions of which a toast of this tab says how far they are.
export const followed = signal<readonly string[]>([]);

const ON = "executions";
const MOST_PREVIEWED = 100_000;
const LOOK = "2s";

// How many it would touch, by a dry run of the same request.
export async function previewOf(verb: Verb, target: Target): Promise<Preview> {
  if ("ids" in target) return { count: target.ids.length, isCapped: false };
  const body = { action: verb, on: ON, filter: { ...target.filter }, asOf: target.asOf, atMost: MOST_PREVIEWED };
  const answer = (await change("post", "/actions", { query: { dryRun: true }, body })) as { would?: Preview };
  return answer.would ?? { count: 0, isCapped: false };
}

interface Sent {
  verb: Verb;
  target: Target;
  number: number;
  rate?: number;
}

// Sends it. Ids are acted on at once; what a filter finds is worked on in the background, and a toast says how far it is.
export async function send({ verb, target, number, rate }: Sent, onChange: () => void): Promise<void> {
  if ("ids" in target) {
    const body = { action: verb, on: ON, ids: [...target.ids] };
    const answer = (await change("post", "/actions", { body })) as {
      items: { id: string; changed: boolean; error?: string | null }[];
    };
    const done = answer.items.filter((item) => item.changed).length;
    const refusal = answer.items.find((item) => item.error)?.error ?? null;
    const refused = answer.items.filter((item) => item.error).map((item) => item.id);
    say(verb, { done, total: answer.items.length, refusal }, refused, onChange);
    onChange();
    return;
  }
  const filter = { ...target.filter };
  const body = { action: verb, on: ON, filter, asOf: target.asOf, atMost: number, ...(rate ? { rate } : {}) };
  const action = (await change("post", "/actions", { body })) as Action;
  void follow(action, verb, onChange);
}

function say(verb: Verb, outcome: Outcome, refused: readonly string[], onChange: () => void): void {
  const kind = outcome.done === 0 && outcome.total > 0 ? "failed" : "success";
  const action = refused.length === 0 ? undefined : againFor(verb, refused, onChange);
  showToast({ kind, text: outcomeWords(verb, outcome), action });
}

function againFor(verb: Verb, ids: readonly string[], onChange: () => void) {
  const run = () => void send({ verb, target: { ids }, number: ids.length }, onChange).catch(() => undefined);
  return { label: "Try those again", run };
}

export async function follow(begun: Action, verb: Verb, onChange: () => void): Promise<void> {
  const stop = () => void stopAction(begun.actionId);
  const shown = (action: Action) => ({
    kind: "running" as const,
    text: `${WORDS[verb].done} ${count(action.done)} of ${count(totalOf(action))}`,
    progress: (action.done + action.failed) / Math.max(1, totalOf(action)),
    action: { label: "Stop", run: stop },
  });
  const toast = showToast(shown(begun));
  followed.set([...followed.get(), begun.actionId]);
  try {
    let action = begun;
    while (!hasEnded(action)) {
      action = await get("/actions/{action}", { path: { action: begun.actionId }, query: { wait: LOOK } });
      changeToast(toast, shown(action));
      onChange();
    }
    showEnd(toast, endOf(action, verb, onChange));
  } catch (error) {
    showEnd(toast, { kind: "failed", text: `How far it is, is not known: ${problemOf(error).message}.` });
  }
  onChange();
}

// A toast whose button was pressed is gone: the end has one of its own.
function showEnd(toast: number, end: Omit<Toast, "id">): void {
  if (toasts.get().some((one) => one.id === toast)) changeToast(toast, end);
  else showToast(end);
}

function endOf(action: Action, verb: Verb, onChange: () => void) {
  if (action.status === "refused") {
    const text = `${WORDS[verb].failed}: more than ${count(action.atMost)} match now. Nothing was done.`;
    return { kind: "failed" as const, text };
  }
  const refusal = action.errors[0]?.detail ?? null;
  const isStopped = action.status === "cancelled";
  const text = outcomeWords(verb, { done: action.done, total: totalOf(action), refusal, isStopped });
  const ids = action.errors.map((one) => one.id);
  const kind = action.done === 0 && action.failed > 0 ? ("failed" as const) : ("success" as const);
  return ids.length === 0 || isStopped ? { kind, text } : { kind, text, action: againFor(verb, ids, onChange) };
}

// Until all are collected, as many as the preview found.
export function totalOf(action: Pick<Action, "status" | "total" | "atMost">): number {
  return action.status === "done" ? action.total : Math.max(action.total, action.atMost);
}

export function hasEnded(action: Pick<Action, "status">): boolean {
  return ["done", "cancelled", "refused"].includes(action.status);
}

export async function stopAction(id: string): Promise<void> {
  try {
    await change("post", "/actions/{action}/cancel", { path: { action: id } });
  } catch (error) {
    showToast({ kind: "failed", text: `Not stopped: ${problemOf(error).message}.` });
  }
}
