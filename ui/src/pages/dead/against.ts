import { get } from "../../api/client";
import { count } from "../../lib/format";
import type { ErrorDetail, ErrorGroup } from "./group";

const MOST_ERRORS = 20;
const MOST_JOBS = 10;

export interface JobName {
  app: string;
  job: string;
}

// What speaks against a replay of these errors, in sentences: the version in force, a pause, and that it still happens.
export async function cautionsOf(groups: readonly ErrorGroup[]): Promise<string[]> {
  const known = groups
    .flatMap((group) => (group.fingerprint === null ? [] : [group.fingerprint]))
    .slice(0, MOST_ERRORS);
  const [details, paused] = await Promise.all([
    Promise.all(known.map((fingerprint) => get("/errors/{fingerprint}", { path: { fingerprint } }).catch(() => null))),
    pausedOf(groups.flatMap((group) => group.jobs)),
  ]);
  const found = details.filter((one) => one !== null);
  const lately = found.reduce((sum, one) => sum + one.lastMinute, 0);
  return [
    ...new Set(found.flatMap((one) => versionOf(one, groups.length > 1))),
    ...paused,
    ...(lately === 0
      ? []
      : [
          `The error still happens: ${count(lately)} in the last minute. Replayed now, they would probably fail again.`,
        ]),
  ];
}

// The same for all dead letters of some jobs.
export async function cautionsOfJobs(jobs: readonly string[]): Promise<string[]> {
  if (jobs.length === 0) return [];
  const found = await get("/errors", { query: { job: [...jobs], limit: MOST_ERRORS } }).catch(() => null);
  return cautionsOf(found?.items ?? []);
}

function versionOf(error: ErrorDetail, isOneOfMany: boolean): string[] {
  if (error.rollBack === null || error.firstVersion === null) return [];
  const version = `Version ${error.firstVersion}${isOneOfMany ? ` of ${error.jobs[0]?.job}` : ""}`;
  if (error.rollBack.version === error.firstVersion)
    return [`${version}, which brought ${isOneOfMany ? "an" : "this"} error, is still in force.`];
  return [`Version ${error.rollBack.version}, which is in force, has the error that came with ${error.firstVersion}.`];
}

async function pausedOf(jobs: readonly JobName[]): Promise<string[]> {
  const names = new Map(jobs.map((one) => [`${one.app}/${one.job}`, one]));
  const found = await Promise.all(
    [...names.values()]
      .slice(0, MOST_JOBS)
      .map(({ app, job }) => get("/jobs/{job}", { path: { job }, query: { app } }).catch(() => null)),
  );
  return found.flatMap((one) => (one?.paused == null ? [] : [`Job ${one.name} is paused: they will wait.`]));
}
