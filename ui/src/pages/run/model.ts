import type { Answer } from "../../api/types";
import { hasEnded } from "../../lib/states";

export type Run = Answer<"/runs/{run}">;
export type Step = Answer<"/runs/{run}/steps">["items"][number];
export type Forecast = Answer<"/runs/{run}/forecast">;

export function isReached(step: Step): boolean {
  return step.status !== "pending";
}

export function hasStepEnded(step: Step): boolean {
  return hasEnded(step.status) || step.status === "blocked";
}

export function isOpen(step: Step): boolean {
  return isReached(step) && !hasStepEnded(step);
}

export function isBad(step: Step): boolean {
  return step.status === "failed" || step.status === "cancelled" || step.status === "blocked";
}

export function byName(steps: readonly Step[]): Map<string, Step> {
  return new Map(steps.map((step) => [step.step, step]));
}

// All steps that come after one, directly or not.
export function after(name: string, steps: ReadonlyMap<string, Step>): Set<string> {
  const found = new Set<string>();
  const open = [name];
  for (let next = open.pop(); next !== undefined; next = open.pop())
    for (const further of steps.get(next)?.downstream ?? [])
      if (!found.has(further)) {
        found.add(further);
        open.push(further);
      }
  return found;
}

// The open step that the rest of the run waits for: the one that is expected to end last, or that most steps come after.
export function holderOf(steps: readonly Step[], forecast: Forecast | undefined): Step | null {
  const named = byName(steps);
  const ends = new Map((forecast?.steps ?? []).map((one) => [one.step, one.endsAt ?? ""]));
  const weight = (step: Step) => after(step.step, named).size;
  const open = steps.filter(isOpen);
  return open.reduce<Step | null>((best, step) => {
    if (best === null) return step;
    const [ours, theirs] = [weight(step), weight(best)];
    if (ours !== theirs) return ours > theirs ? step : best;
    return (ends.get(step.step) ?? "") > (ends.get(best.step) ?? "") ? step : best;
  }, null);
}

// The chain of steps that decides when the run ends. Of an open run: back from the step that holds it up by what ended
// last before it, and forward by what is expected to end last.
export function criticalPath(run: Run, steps: readonly Step[], forecast: Forecast | undefined): string[] {
  if (run.criticalPath !== null) return run.criticalPath.steps;
  const holder = holderOf(steps, forecast);
  if (holder === null) return [];
  const named = byName(steps);
  return [...before(holder, named), holder.step, ...onwards(holder, named, forecast)];
}

function before(step: Step, named: ReadonlyMap<string, Step>): string[] {
  const found: string[] = [];
  const endOf = (one: Step) => one.completedAt ?? "";
  for (let at: Step | undefined = step; at !== undefined; ) {
    const previous: Step[] = at.upstream.flatMap((name) => named.get(name) ?? []);
    at = previous.reduce<Step | undefined>((last, one) => (last && endOf(last) >= endOf(one) ? last : one), undefined);
    if (at !== undefined) found.unshift(at.step);
  }
  return found;
}

function onwards(step: Step, named: ReadonlyMap<string, Step>, forecast: Forecast | undefined): string[] {
  const ends = new Map((forecast?.steps ?? []).map((one) => [one.step, one.endsAt ?? ""]));
  const depths = new Map<string, number>();
  const depth = (name: string): number => {
    const known = depths.get(name);
    if (known !== undefined) return known;
    const value = 1 + Math.max(0, ...(named.get(name)?.downstream ?? []).map(depth));
    depths.set(name, value);
    return value;
  };
  const found: string[] = [];
  for (let at: Step | undefined = step; at !== undefined; ) {
    const next: string | undefined = [...at.downstream].sort(
      (a, b) => (ends.get(b) ?? "").localeCompare(ends.get(a) ?? "") || depth(b) - depth(a),
    )[0];
    at = next === undefined ? undefined : named.get(next);
    if (at !== undefined) found.push(at.step);
  }
  return found;
}

// Failed, tried again, or already longer than usual.
export function isTrouble(step: Step, forecast: Forecast | undefined): boolean {
  if (isBad(step) || step.status === "retrying" || step.attemptCount > 1) return true;
  if (step.map !== null && step.map.failed > 0) return true;
  const usual = forecast?.steps.find((one) => one.step === step.step)?.usualS ?? null;
  return isOpen(step) && usual !== null && step.duration !== null && step.duration > usual;
}
