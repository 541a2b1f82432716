import { get } from "../../api/client";
import type { Subject } from "./types";

// The note of the pause that is about to end, so that an undo pauses again with the same words.
export async function noteOf(subject: Subject): Promise<string | null> {
  const found = await pausedOf(subject).catch(() => null);
  return found?.note ?? null;
}

async function pausedOf({ kind, id, app }: Subject): Promise<{ note: string | null } | null> {
  if (kind === "queue") return (await get("/queues/{queue}", { path: { queue: id } })).paused;
  if (kind === "job")
    return (await get("/jobs/{job}", { path: { job: id }, query: app === null ? {} : { app } })).paused;
  if (kind === "run") return (await get("/runs/{run}", { path: { run: id } })).paused;
  return null;
}
