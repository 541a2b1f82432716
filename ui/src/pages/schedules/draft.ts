// A schedule that is being written, and what a dry run says of it.
import { useEffect, useState } from "react";
import { change } from "../../api/client";
import { type Problem, problemOf } from "../../api/problem";
import type { Answer, BodyOf, Operation } from "../../api/types";

type Body = BodyOf<Operation<"/schedules", "post">>;

export const TRIGGERS = [
  { value: "cron", label: "at times of a cron expression", example: "0 3 * * 1-5 (minute, hour, day, month, weekday)" },
  { value: "every", label: "at a fixed interval", example: "15m, 1h30m" },
  { value: "after", label: "some time after the last run has ended", example: "10m" },
  { value: "at", label: "once, at a time", example: "2026-12-24T18:00:00+01:00" },
] as const;

export interface Draft {
  job: string;
  name: string;
  trigger: (typeof TRIGGERS)[number]["value"];
  when: string;
  tz: string;
  overlap: string;
  catchUp: string;
  arguments: string;
}

export const EMPTY: Draft = {
  job: "",
  name: "",
  trigger: "cron",
  when: "",
  tz: "UTC",
  overlap: "skip",
  catchUp: "last",
  arguments: "{}",
};

export function bodyOf(draft: Draft): Body {
  return {
    job: draft.job.trim(),
    ...(draft.name.trim() === "" ? {} : { name: draft.name.trim() }),
    [draft.trigger]: draft.when.trim(),
    // A fixed delay has no zone, no overlap, and nothing to catch up.
    ...(draft.trigger === "after"
      ? {}
      : { tz: draft.tz.trim() || "UTC", overlap: draft.overlap, catchUp: draft.catchUp }),
    arguments: JSON.parse(draft.arguments.trim() || "{}"),
  } as Body;
}

type Detail = Answer<"/schedules/{schedule}">;

export async function make(draft: Draft): Promise<Detail> {
  return (await change("post", "/schedules", { body: bodyOf(draft) })) as Detail;
}

export interface PreviewOfSchedule extends Detail {
  nextTicks: string[];
  workers: string[];
  reason: string | null;
}

export interface Checked {
  preview: PreviewOfSchedule | null;
  problem: Problem | null;
  badJson: string | null;
}

const PAUSE_MS = 300;
const NOTHING: Checked = { preview: null, problem: null, badJson: null };

export function useDryRun(draft: Draft): Checked {
  const [checked, setChecked] = useState<Checked>(NOTHING);
  const text = JSON.stringify(draft);
  useEffect(() => {
    const given: Draft = JSON.parse(text);
    setChecked(NOTHING);
    if (given.job.trim() === "" || given.when.trim() === "") return;
    let isOld = false;
    const timer = setTimeout(() => {
      check(given).then((found) => {
        if (!isOld) setChecked(found);
      });
    }, PAUSE_MS);
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [text]);
  return checked;
}

async function check(draft: Draft): Promise<Checked> {
  let body: Body;
  try {
    body = bodyOf(draft);
  } catch (error) {
    return { ...NOTHING, badJson: `not JSON: ${error instanceof Error ? error.message : ""}` };
  }
  try {
    const answer = await change("post", "/schedules", { query: { dryRun: true }, body });
    return { ...NOTHING, preview: (answer as unknown as { would: PreviewOfSchedule }).would };
  } catch (error) {
    return { ...NOTHING, problem: problemOf(error) };
  }
}
