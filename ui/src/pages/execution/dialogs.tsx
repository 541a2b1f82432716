import { useState } from "react";
import { change, get } from "../../api/client";
import { Confirm } from "../../components/Confirm";
import { ChoiceField } from "../../components/Field";
import { useAction } from "../../hooks/useAction";
import { useApi } from "../../hooks/useApi";
import { serverNow } from "../../hooks/useNow";
import { useZone } from "../../hooks/useZone";
import { count } from "../../lib/format";
import { shortTime, type Zone } from "../../lib/zone";
import type { Execution } from "./attempt";
import { priorityWords } from "./ExecutionFacts";
import { useReplayed } from "./useReplayed";

interface Props {
  execution: Execution;
  onClose: () => void;
}

export function ReplayDialog({ execution, onClose }: Props) {
  const id = execution.executionId;
  const similar = useApi(
    "/executions/{execution}/similar",
    { path: { execution: id } },
    { enabled: execution.status === "failed" },
  );
  const replayed = useReplayed();
  const replay = useAction(() => change("post", "/executions/{execution}/replay", { path: { execution: id } }), {
    done: replayed,
    failed: "Not replayed",
  });
  const lately = similar.data?.group?.lastMinute ?? 0;
  return (
    <Confirm
      title={`Replay ${execution.job}?`}
      keep="Keep it"
      act="Replay 1"
      isBusy={replay.isBusy}
      problem={replay.problem}
      onKeep={onClose}
      onAct={() => void replay.run().then((answer) => answer !== undefined && onClose())}
    >
      It becomes a new execution with its old arguments, queue and priority.
      {lately > 0 && (
        <p>
          <b>The error still happens:</b> {count(lately)} in the last minute. Replayed now, it would probably fail
          again.
        </p>
      )}
    </Confirm>
  );
}

export function DiscardDialog({ execution, onClose }: Props) {
  const path = { execution: execution.executionId };
  const discard = useAction(() => change("post", "/executions/{execution}/discard", { path }), {
    done: () => `Discarded 1 dead letter of ${execution.job}.`,
    failed: "Not discarded",
  });
  return (
    <Confirm
      title="Discard 1 dead letter?"
      keep="Keep it"
      act="Discard 1"
      isBusy={discard.isBusy}
      problem={discard.problem}
      onKeep={onClose}
      onAct={() => void discard.run().then((answer) => answer !== undefined && onClose())}
    >
      It leaves the dead letters; its history stays.
    </Confirm>
  );
}

export function CancelDialog({ execution, onClose }: Props) {
  const isRunning = execution.status === "running";
  const path = { execution: execution.executionId };
  const { zone } = useZone();
  const cancel = useAction(
    async (note: string) => {
      const answer = await change("post", "/executions/{execution}/cancel", {
        path,
        body: note === "" ? {} : { note },
      });
      const found = answer.changed ? null : await get("/executions/{execution}", { path });
      return { ...answer, completedAt: found?.completedAt ?? null };
    },
    {
      done: (answer) =>
        !answer.changed
          ? tooLate(answer.status, answer.completedAt, zone)
          : isRunning
            ? `${execution.job} was asked to stop.`
            : `Cancelled ${execution.job}.`,
      failed: "Not cancelled",
    },
  );
  return (
    <Confirm
      title={isRunning ? `Ask ${execution.job} to stop?` : `Cancel ${execution.job}?`}
      keep={isRunning ? "Keep running" : "Keep it"}
      act="Cancel 1"
      hasNote
      isBusy={cancel.isBusy}
      problem={cancel.problem}
      onKeep={onClose}
      onAct={(note) => void cancel.run(note).then((answer) => answer !== undefined && onClose())}
    >
      {isRunning
        ? "Its code learns of it within a second; code that does not look may finish."
        : "It ends at once, and never starts."}
    </Confirm>
  );
}

function tooLate(status: string, completedAt: string | null, zone: Zone): string {
  if (completedAt === null) return `Not cancelled: it is ${status}.`;
  return `Not cancelled: it had already ended as ${status} at ${shortTime(new Date(completedAt), zone, new Date(serverNow()))}.`;
}

const LEVELS = [
  { value: "10", label: "high (10)" },
  { value: "0", label: "normal (0)" },
  { value: "-10", label: "low (-10)" },
  { value: "100", label: "before all others (100)" },
];

export function PriorityDialog({ execution, onClose }: Props) {
  const [level, setLevel] = useState(execution.priority < 10 ? "10" : "100");
  const path = { execution: execution.executionId };
  const body = { priority: Number(level) };
  const raise = useAction(() => change("patch", "/executions/{execution}", { path, body }), {
    done: () => `${execution.job} has priority ${priorityWords(Number(level))}.`,
    failed: "Priority not changed",
  });
  return (
    <Confirm
      title={`Raise the priority of ${execution.job}?`}
      keep="Keep its place"
      act="Change the priority"
      isBusy={raise.isBusy}
      problem={raise.problem}
      onKeep={onClose}
      onAct={() => void raise.run().then((answer) => answer !== undefined && onClose())}
    >
      <p>
        It has priority {priorityWords(execution.priority)}. One more point counts as much as 60 s of waiting, and moves
        it before others of its queue.
      </p>
      <ChoiceField label="priority" value={level} options={LEVELS} onChange={setLevel} />
    </Confirm>
  );
}
