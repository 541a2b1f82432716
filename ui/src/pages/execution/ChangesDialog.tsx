import { type FormEvent, useState } from "react";
import { change } from "../../api/client";
import { Button } from "../../components/Button";
import { Dialog, FormFoot } from "../../components/Dialog";
import { TextArea, TextField } from "../../components/Field";
import { useAction } from "../../hooks/useAction";
import type { Execution } from "./attempt";
import { useReplayed } from "./useReplayed";

// Replays with other arguments, queue or priority. The arguments are JSON, checked here and by the server.
export function ChangesDialog({ execution, onClose }: { execution: Execution; onClose: () => void }) {
  const [text, setText] = useState(JSON.stringify(execution.arguments ?? {}, null, 2));
  const [queue, setQueue] = useState(execution.queue);
  const [priority, setPriority] = useState(String(execution.priority));
  const parsed = parsedOf(text);
  const level = Number(priority);
  const isLevel = priority.trim() !== "" && Number.isInteger(level) && Math.abs(level) <= 100;
  const replayed = useReplayed();
  const path = { execution: execution.executionId };
  const replay = useAction(
    () =>
      change("post", "/executions/{execution}/replay", {
        path,
        body: { arguments: parsed.value, queue: queue.trim(), priority: level },
      }),
    { done: replayed, failed: "Not replayed" },
  );
  const flaw = replay.problem?.flaws.find((one) => one.pointer?.startsWith("/arguments"))?.detail;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (parsed.error === null && isLevel) void replay.run().then((answer) => answer !== undefined && onClose());
  };
  return (
    <Dialog title={`Replay ${execution.job} with changes?`} isWide onClose={onClose}>
      <form className="col" onSubmit={submit}>
        <p className="d2">It becomes a new execution; this one stays as it is.</p>
        <TextArea
          label="arguments"
          hint="JSON"
          rows={Math.min(16, Math.max(4, text.split("\n").length + 1))}
          spellCheck={false}
          value={text}
          error={parsed.error ?? flaw ?? null}
          onChange={setText}
          data-autofocus
        />
        <TextField label="queue" value={queue} onChange={setQueue} error={replay.problem?.flawAt("/queue") ?? null} />
        <TextField
          label="priority"
          hint="-100 to 100"
          inputMode="numeric"
          value={priority}
          onChange={setPriority}
          error={isLevel ? null : "a whole number from -100 to 100"}
        />
        {replay.problem !== null && flaw === undefined && <p className="sm c-failed">{replay.problem.message}</p>}
        <FormFoot>
          <Button onClick={onClose}>Keep it</Button>
          <Button kind="primary" type="submit" disabled={replay.isBusy || parsed.error !== null || !isLevel}>
            Replay 1
          </Button>
        </FormFoot>
      </form>
    </Dialog>
  );
}

function parsedOf(text: string): { value: Record<string, unknown>; error: string | null } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value))
      return { value: {}, error: "arguments are one JSON object, by parameter name" };
    return { value: value as Record<string, unknown>, error: null };
  } catch (error) {
    return { value: {}, error: `no JSON: ${error instanceof Error ? error.message : "it cannot be read"}` };
  }
}
