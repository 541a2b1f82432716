// Why an execution, an attempt or a run ended as it did: the codes of the server, in words.
const WORDS: Record<string, string> = {
  completed: "done",
  error: "it raised an error",
  timeout: "ran longer than its timeout",
  total_timeout: "not done within its time in all",
  retries_exhausted: "it was the last attempt",
  permanent_error: "an error that no retry mends",
  bad_arguments: "arguments do not fit the job",
  bad_result: "result cannot be stored",
  crashed: "its process died",
  crash_loop: "its process died several times",
  cancelled: "cancelled",
  replaced: "a new one took its key",
  start_deadline: "not started in time",
  snoozed: "snoozed",
  drained: "its worker was asked to stop",
  not_begun: "given back before it began",
  not_held: "its worker did not know of it",
  lease_lost: "its worker was lost",
  out_of_memory: "needed more memory than it may have",
  suspected: "may have made its worker die",
  step_failed: "a step failed",
  undo_failed: "an undo failed",
  run_timeout: "the run was not done in time",
  too_deep: "below too many runs",
  inputs_too_large: "inputs are too large",
  wait_timeout: "the wait was too long",
  rejected: "rejected",
};

export function reasonWords(code: string): string {
  return WORDS[code] ?? code.replaceAll("_", " ");
}
