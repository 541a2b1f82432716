import { useState } from "react";
import { change } from "../../api/client";
import { useMay } from "../../api/session";
import type { Answer } from "../../api/types";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { useAction } from "../../hooks/useAction";
import { useKeys } from "../../hooks/useKeys";
import { count, rate } from "../../lib/format";

interface Props {
  name: string;
  paused: Answer<"/queues/{queue}">["paused"];
  inPerS: number;
  queued: number;
  isSmall?: boolean;
  // Whether the key p does the same.
  hasKey?: boolean;
}

// Pauses with a note, after a question; resumes at once, with a way back that keeps the note.
export function PauseButton({ name, paused, inPerS, queued, isSmall = true, hasKey = false }: Props) {
  const may = useMay();
  const [isAsking, setAsking] = useState(false);
  const path = { queue: name };
  const pauseAgain = useAction((note: string) => change("post", "/queues/{queue}/pause", { path, body: { note } }), {
    done: () => `Queue ${name} paused.`,
    failed: "Not paused",
  });
  const resume = useAction(() => change("post", "/queues/{queue}/resume", { path }), {
    done: () => ({
      text: `Queue ${name} resumed. ${count(queued)} queued.`,
      action: { label: "Undo: pause again", run: () => void pauseAgain.run(paused?.note ?? "") },
    }),
    failed: "Not resumed",
  });
  const pause = useAction((note: string) => change("post", "/queues/{queue}/pause", { path, body: { note } }), {
    done: () => ({
      text: `Queue ${name} paused.`,
      action: { label: "Undo: resume", run: () => void resume.run() },
    }),
    failed: "Not paused",
  });
  const canPause = may("operate") && paused === null;
  useKeys(hasKey && canPause ? { p: { does: "pause the queue", run: () => setAsking(true) } } : {});
  if (!may("operate")) return null;
  if (paused !== null)
    return (
      <Button isSmall={isSmall} disabled={resume.isBusy} onClick={() => void resume.run()}>
        Resume
      </Button>
    );
  const act = async (note: string) => {
    if ((await pause.run(note)) !== undefined) setAsking(false);
  };
  return (
    <>
      <Button isSmall={isSmall} title={hasKey ? "p" : undefined} onClick={() => setAsking(true)}>
        Pause…
      </Button>
      {isAsking && (
        <Confirm
          title={`Pause queue ${name}?`}
          keep="Keep it running"
          act="Pause queue"
          hasNote
          isBusy={pause.isBusy}
          problem={pause.problem}
          onKeep={() => setAsking(false)}
          onAct={(note) => void act(note)}
        >
          Executions that run continue to their end; {inPerS > 0 ? `${rate(inPerS)} per second` : "new ones"} will wait.
        </Confirm>
      )}
    </>
  );
}
