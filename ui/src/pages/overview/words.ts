import type { Answer } from "../../api/types";
import { capped, count, percent, plural } from "../../lib/format";

type Numbers = Answer<"/overview">["numbers"];

// The five numbers that support the verdict.
export function numbersInWords(numbers: Numbers, isShort: boolean): string {
  const succeed = numbers.successRate === null ? null : `${percent(numbers.successRate)} succeed`;
  const queued = [`${count(numbers.queued)} queued`, ...waitingInWords(numbers)].join(", ");
  if (isShort)
    return [succeed, queued, `${numbers.busy} of ${plural(numbers.slots, "slot")}`]
      .filter((one) => one !== null)
      .join(" · ");
  const ended = numbers.endedPerMinute === null ? 0 : numbers.endedPerMinute;
  const flow =
    succeed === null
      ? "nothing ended in the last 15 minutes"
      : `${perMinute(ended)} executions end per minute, ${succeed}`;
  const slots =
    numbers.slots === 0 ? "no worker is at work" : `${count(numbers.busy)} of ${plural(numbers.slots, "slot")} busy`;
  return [flow, queued, slots, deadInWords(numbers)].join(" · ");
}

export function perMinute(value: number): string {
  return value >= 10 ? count(Math.round(value)) : String(Math.round(value * 10) / 10);
}

// Those of paused jobs, and others that wait for more than a slot.
function waitingInWords({ waiting, waitingIsCapped }: Numbers): string[] {
  return waiting === 0 ? [] : [`${capped(waiting, waitingIsCapped)} waiting`];
}

function deadInWords({ dead, deadIsCapped, deadNew }: Numbers): string {
  if (dead === 0) return "no dead letters";
  const all = `${capped(dead, deadIsCapped)} dead ${dead === 1 ? "letter" : "letters"}`;
  if (deadNew === 0) return `${all}, none of them new`;
  return deadNew >= dead ? `${all}, ${dead === 1 ? "new" : "all new"}` : `${all}, ${count(deadNew)} of them new`;
}
