import { plural } from "../../lib/format";
import { endedInWords, isStopped, stateOf, troubleOf, type Worker } from "../workers/words";

export function verdictOf(worker: Worker): string {
  if (isStopped(worker)) {
    const how = worker.state === "lost" ? "was lost" : "has stopped";
    return `Worker ${worker.name} ${how}: ${endedInWords(worker)}`;
  }
  const trouble = troubleOf(worker);
  if (trouble !== null) return `${stateOf(worker).word}: ${trouble}`;
  if (worker.state === "draining")
    return worker.busy === 0 ? "Drains, and holds nothing" : `Drains: ${plural(worker.busy, "execution")} to finish`;
  if (worker.busy === 0) return `Idle, with ${plural(worker.slots, "free slot")}`;
  if (worker.busy >= worker.slots) return `Full: all of its ${plural(worker.slots, "slot")} are busy`;
  return `Busy: ${worker.busy} of ${plural(worker.slots, "slot")}`;
}
