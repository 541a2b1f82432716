import type { Finding } from "../findings/types";

interface Explained {
  // What the finding means for the work.
  means: string;
  // What helps, most likely first.
  remedy: string;
}

export const KINDS: Record<Finding["kind"], Explained> = {
  failing: {
    means: "More executions of this job fail for good than usual. Each one is kept as a dead letter.",
    remedy:
      "Read the error. If a new version brought it, roll back; if a service is down, pause the job. Replay the dead letters when the cause is gone.",
  },
  no_worker: {
    means: "Executions wait, and no live worker may run them: its app, job, pool, tags or resources do not match.",
    remedy: "Start a worker that has what they need, or change what the job asks for.",
  },
  breaker_open: {
    means: "Calls to a service failed in a row, so executions that need it wait instead of failing, too.",
    remedy: "Mend the service. The breaker lets one execution try from time to time, and closes when it succeeds.",
  },
  worker_trouble: {
    means: "The worker is live, but cannot do all of its work.",
    remedy:
      "Read the trouble: disk space, memory and missing files are the usual causes. Drain the worker and start it again.",
  },
  worker_lost: {
    means: "A worker sent no heartbeat until its lease ran out. Other workers get the executions that it held.",
    remedy: "Look at its machine and its log: killed, out of memory, or cut off from the database.",
  },
  queue_growing: {
    means: "More executions arrive than end, so each one waits longer than the one before.",
    remedy: "Add slots (see Enough slots? on Workers), or find out what arrives so often or takes so long.",
  },
  queue_paused: {
    means: "A person has paused this queue, and executions wait in it.",
    remedy: "Resume it when the reason in the note is gone.",
  },
  job_paused: {
    means: "A person has paused this job, and its executions wait.",
    remedy: "Resume it when the reason in the note is gone.",
  },
  run_paused: {
    means: "A person has paused this run: steps that run end, and no further step starts.",
    remedy: "Resume it when the reason in the note is gone.",
  },
  approval_waiting: {
    means: "A run waits for the answer of a person.",
    remedy: "Approve or reject it.",
  },
  approval_overdue: {
    means: "A run waits for the answer of a person, for long or with little time left.",
    remedy: "Approve or reject it.",
  },
  ticks_overlap: {
    means: "Ticks of this schedule came while the execution before still ran, so they did not run.",
    remedy:
      "Make the job faster or its interval longer, and pause the schedule until then; a timeout ends an execution that hangs.",
  },
  ticks_missed: {
    means: "Ticks of this schedule passed without an execution, because no worker was there in time.",
    remedy: "Keep a worker running. Backfill runs the ticks that are missing.",
  },
  schedule_overdue: {
    means: "A tick has come and no worker has looked at it yet.",
    remedy: "Start a worker of the app: workers look at schedules, there is no other process for them.",
  },
  dead_letters: {
    means:
      "Executions have failed for good within the last hour, although the job does not fail more often than usual.",
    remedy: "Read the error, mend it, and replay or discard them.",
  },
  long_running: {
    means: "An execution takes much longer than executions of this job usually do.",
    remedy: "Look at its log and progress. Cancel it if it hangs; a timeout on the job does that by itself.",
  },
  worker_late: {
    means:
      "Heartbeats of this worker come late. If one is missing for the length of its lease, the worker counts as lost.",
    remedy: "Give its machine or the database more room, or the worker fewer slots.",
  },
};

export const UNKNOWN: Explained = { means: "The server is newer than this page.", remedy: "Load the page again." };
