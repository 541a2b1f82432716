import { count, plural } from "../../lib/format";
import { forecastOf, type Outlook, waitsInWords } from "./words";

export function verdictOfAll(queues: readonly Outlook[]): string {
  if (queues.length === 0) return "No queue is known";
  const standing = [
    wordsFor(
      queues,
      (queue) => queue.state === "no_worker",
      "has jobs that no worker can run",
      "have jobs that no worker can run",
    ),
    wordsFor(queues, (queue) => queue.state === "paused", "is paused", "are paused"),
    wordsFor(queues, hasPausedJob, "has a paused job", "have a paused job"),
    wordsFor(queues, (queue) => queue.outlook === "growing", "grows", "grow"),
  ].filter((words) => words !== null);
  if (standing.length === 0) return `${plural(queues.length, "queue")}, all of them keep up`;
  return `Of ${plural(queues.length, "queue")}, ${standing.join(", ")}`;
}

function hasPausedJob(queue: Outlook): boolean {
  return queue.state === "active" && queue.waits.some((wait) => wait.kind === "job_paused");
}

function wordsFor(queues: readonly Outlook[], is: (queue: Outlook) => boolean, one: string, many: string) {
  const number = queues.filter(is).length;
  return number === 0 ? null : `${count(number)} ${number === 1 ? one : many}`;
}

export function supportOfAll(queues: readonly Outlook[]): string {
  const queued = queues.reduce((sum, queue) => sum + queue.queued, 0);
  const running = queues.reduce((sum, queue) => sum + queue.running, 0);
  const waiting = queues.reduce((sum, queue) => sum + queue.waiting, 0);
  const held = waiting === 0 ? "" : ` · ${count(waiting)} waiting for something else`;
  return `${count(queued)} queued · ${count(running)} running${held}`;
}

// About one queue, in the words of a person.
export function verdictOf(queue: Outlook): string {
  const held = waitsInWords(queue);
  const waiting = queue.queued === 0 ? "nothing waits" : `${count(queue.queued)} queued`;
  if (queue.paused !== null) {
    const { by, note } = queue.paused;
    return `Queue ${queue.name} is paused${by === null ? "" : ` by ${by}`}${note ? `: “${note}”` : ""}`;
  }
  if (queue.state === "no_worker")
    return `${queue.queued === 0 ? "Executions wait" : waiting}, and ${queue.lacks ?? "no live worker can run them"}`;
  if (queue.outlook === "growing") return `${waiting}, and more arrive than end`;
  if (queue.queued === 0 && held !== null) return held;
  if (queue.queued === 0)
    return queue.running === 0 ? "Nothing waits, and nothing runs" : `Nothing waits, ${count(queue.running)} running`;
  return `${waiting}. ${forecastOf(queue)}`;
}
