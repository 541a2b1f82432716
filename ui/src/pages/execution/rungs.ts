// The checks of a claim as the rungs of a ladder. The API has more checks than a person needs: those about what it waits
// for are one rung, and those about workers are one rung, unless one of them fails.
import type { Execution } from "./attempt";

export type Check = NonNullable<Execution["why"]>["checks"][number];

interface Shape {
  title: string;
  codes: readonly string[];
}

const SHAPES: readonly Shape[] = [
  { title: "Due", codes: ["due"] },
  { title: "Dependencies met", codes: ["dependencies", "event", "approval", "run_paused", "map", "wait", "steps"] },
  { title: "Job not paused", codes: ["job_paused"] },
  { title: "Queue not paused", codes: ["queue_paused"] },
  { title: "Breakers closed", codes: ["breaker"] },
  { title: "Within limits", codes: ["limits"] },
  { title: "A live worker matches", codes: ["worker", "worker_has_job", "worker_fits", "worker_starts"] },
  { title: "A slot is free", codes: ["slot"] },
  { title: "Next in line", codes: ["place"] },
];

export interface LadderRung {
  title: string;
  holds: boolean | null;
  check: Check;
}

const IN_LINE = "place";

// The first check that holds it back. A place in line is none: its turn will come.
export function reasonCheck(checks: readonly Check[]): Check | null {
  return checks.find((check) => check.holds === false && check.code !== IN_LINE) ?? null;
}

export function rungsOf(checks: readonly Check[]): LadderRung[] {
  const known = new Set(SHAPES.flatMap((shape) => shape.codes));
  const others = checks
    .filter((check) => !known.has(check.code))
    .map((check) => ({ title: check.code, codes: [check.code] }));
  let isBehind = false;
  return [...SHAPES, ...others].flatMap((shape) => {
    const found = checks.filter((check) => shape.codes.includes(check.code));
    const check = found.find((one) => one.holds === false) ?? found.find((one) => one.holds === true) ?? found[0];
    if (check === undefined) return [];
    const fails = check.holds === false && check.code !== IN_LINE;
    const holds =
      check.code === IN_LINE && check.holds === false ? null : isBehind && !fails ? after(check) : check.holds;
    isBehind ||= fails;
    return [{ title: shape.title.replaceAll("_", " "), holds, check }];
  });
}

// What comes behind the failing check holds or not, but a claim would not have looked.
function after(check: Check): boolean | null {
  return check.code === "slot" || check.code === IN_LINE ? null : check.holds;
}
