import { age, argumentsInLine, count, duration, plural, secondsBetween } from "../../lib/format";
import { reasonWords } from "../../lib/reasons";
import { markOf } from "../../lib/states";
import { after, byName, isReached, type Run, type Step } from "./model";

const ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

export interface Item {
  index: number | null;
  status: string;
  attempt: number;
}

// A sentence in three parts; the middle one is the step that it is about.
export interface Sentence {
  lead: string;
  subject: string;
  rest: string;
}

export function plain({ lead, subject, rest }: Sentence): string {
  return [lead, subject === "" ? rest : `${subject} ${rest}`].filter((part) => part !== "").join(" ");
}

export function titleOf(step: Step): string {
  return step.map === null ? step.step : `${step.step} × ${count(step.map.width)}`;
}

// The state of a step as an execution's state, for its icon. A step that the run has not come to waits.
export function statusOf(step: Step): string {
  return step.status === "pending" ? "waiting" : step.status;
}

export function stateWord(step: Step): string {
  if (step.status === "pending") return "Not reached";
  if (step.isKept) return "Kept";
  return markOf(step.status).word;
}

// One line under the name of a step: "19 of 24 · [17] try 3", "12 s", "waits for transform".
export function detailOf(step: Step, now: number): string {
  if (step.isKept) return "kept from the earlier run";
  if (step.map !== null && isReached(step)) return mapWords(step);
  if (step.subRun !== null) return `${step.subRun.endedCount} of ${plural(step.subRun.stepCount, "step")}`;
  if (step.wait !== null && step.wait.outcome === null) return waitWords(step);
  if (step.status === "pending") return step.waitsFor.length === 0 ? "not reached" : `waits for ${few(step.waitsFor)}`;
  if (step.status === "blocked" || step.status === "skipped")
    return step.because === null ? step.status : `${step.status}: ${step.because}`;
  const took = step.duration ?? (step.startedAt === null ? null : secondsBetween(step.startedAt, now));
  const tries = step.attemptCount > 1 ? ` · try ${step.attemptCount}` : "";
  if (step.status === "queued" || step.status === "waiting" || step.status === "retrying")
    return markOf(step.status).word.toLowerCase() + tries;
  return (took === null ? markOf(step.status).word.toLowerCase() : duration(took)) + tries;
}

function mapWords(step: Step): string {
  const map = step.map;
  if (map === null) return "";
  const ended = map.success + map.failed + map.cancelled + map.skipped;
  if (map.open === 0 && step.duration !== null)
    return `${duration(step.duration)}${map.failed === 0 ? "" : ` · ${count(map.failed)} failed`}`;
  return `${count(ended)} of ${count(map.width)}${map.failed === 0 ? "" : ` · ${count(map.failed)} failed`}`;
}

function waitWords(step: Step): string {
  const wait = step.wait;
  if (wait === null) return "";
  if (wait.kind === "approval") return wait.who.length === 0 ? "waits for an answer" : `waits for ${few(wait.who)}`;
  return `waits for ${wait.text}`;
}

export function few(names: readonly string[]): string {
  return names.length <= 2 ? names.join(" and ") : `${names[0]} and ${names.length - 1} more`;
}

export function argumentWords(run: Run): string {
  const given = run.arguments as Record<string, unknown> | null;
  return given === null || Object.keys(given).length === 0 ? "" : argumentsInLine(given);
}

export function verdictOf(
  run: Run,
  steps: readonly Step[],
  holder: Step | null,
  item: Item | null,
  now: number,
): Sentence {
  if (run.completedAt !== null) return endedVerdict(run, steps);
  if (run.paused !== null) return pausedVerdict(run, now);
  const lead = run.startedAt === null ? "" : `Running for ${duration(secondsBetween(run.startedAt, now))}.`;
  if (run.stopping !== null)
    return { lead, subject: "", rest: `It is stopping (${run.stopping}): no further step starts.` };
  if (run.isUndoing) return { lead, subject: "", rest: "Its steps have ended and are being undone." };
  if (holder === null) return { lead, subject: "", rest: run.why === null ? "" : `It ${run.why.text}.` };
  return { lead, ...holdingWords(holder, item, after(holder.step, byName(steps)).size) };
}

function holdingWords(step: Step, item: Item | null, later: number): { subject: string; rest: string } {
  const subject = item === null ? step.step : `${step.step} [${item.index}]`;
  const effect = later === 0 ? "is the last step" : `holds up ${later === 1 ? "the step" : `${later} steps`} after it`;
  if (step.wait !== null && step.wait.outcome === null) {
    const rest = `waits for ${step.wait.text}`;
    return { subject, rest: later === 0 ? rest : `${rest}${/[.?!]$/.test(rest) ? " It" : ", and"} ${effect}.` };
  }
  const attempt = item?.attempt ?? step.attemptCount;
  const status = item?.status ?? step.status;
  if (status === "retrying") return { subject, rest: `waits for its next attempt and ${effect}.` };
  if (status === "queued" || status === "waiting") return { subject, rest: `is ${status} and ${effect}.` };
  if (attempt > 1)
    return { subject, rest: `is on its ${ORDINALS[attempt - 1] ?? `${attempt}th`} attempt and ${effect}.` };
  return { subject, rest: later === 0 ? "runs and is the last step." : `runs and ${effect}.` };
}

function pausedVerdict(run: Run, now: number): Sentence {
  const { by, at, note } = run.paused ?? { by: null, at: run.createdAt, note: null };
  const who = by === null ? "" : ` by ${by}`;
  const said = note ? `: “${note}”.` : ".";
  return {
    lead: `Paused${who} for ${age(secondsBetween(at, now))}${said}`,
    subject: "",
    rest: "Steps that run continue; no further step starts.",
  };
}

function endedVerdict(run: Run, steps: readonly Step[]): Sentence {
  const took = run.duration === null ? "" : ` ${run.status === "success" ? "in" : "after"} ${duration(run.duration)}`;
  const missed = steps.filter((step) => step.status === "blocked").length;
  if (run.status === "success") return { lead: `Succeeded${took}.`, subject: "", rest: keptWords(steps) };
  const blocked = missed === 0 ? "" : ` ${plural(missed, "step")} after it did not run.`;
  if (run.status === "failed" && run.failedStep !== null)
    return {
      lead: `Failed${took}.`,
      subject: run.failedStep,
      rest: `failed: ${lastLine(run.errorMessage)}.${blocked}`,
    };
  return {
    lead: `${markOf(run.status).word}${took}${run.reason === null ? "" : `: ${reasonWords(run.reason)}`}.`,
    subject: "",
    rest: blocked.trim(),
  };
}

function keptWords(steps: readonly Step[]): string {
  const kept = steps.filter((step) => step.isKept).length;
  return kept === 0 ? "" : `${plural(kept, "step")} kept from the earlier run.`;
}

export function lastLine(text: string | null): string {
  const lines = (text ?? "").trim().split("\n");
  return (lines.at(-1) ?? "").replace(/\.$/, "");
}
