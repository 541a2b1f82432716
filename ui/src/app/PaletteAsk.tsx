import { change } from "../api/client";
import { Confirm } from "../components/Confirm";
import { useAction } from "../hooks/useAction";
import type { Ask } from "./paletteChoices";

// The question before an action of the palette, as the page of the thing asks it.
export function PaletteAsk({ ask, onClose }: { ask: Ask; onClose: () => void }) {
  const isPause = ask.verb === "pause";
  const action = useAction((note: string) => send(ask, note), {
    done: () => `${capital(ask.kind)} ${ask.name} ${isPause ? "paused" : "resumed"}.`,
    failed: isPause ? "Not paused" : "Not resumed",
  });
  const act = async (note: string) => {
    if ((await action.run(note)) !== undefined) onClose();
  };
  return (
    <Confirm
      title={`${isPause ? "Pause" : "Resume"} ${ask.kind} ${ask.name}?`}
      keep={isPause ? "Keep it active" : "Keep it paused"}
      act={isPause ? `Pause the ${ask.kind}` : `Resume the ${ask.kind}`}
      hasNote={isPause}
      isBusy={action.isBusy}
      problem={action.problem}
      onKeep={onClose}
      onAct={(note) => void act(note)}
    >
      {isPause ? "What runs continues to its end; what comes waits until it is resumed." : "What waits starts again."}
    </Confirm>
  );
}

async function send({ verb, kind, id }: Ask, note: string): Promise<unknown> {
  const body = { note };
  if (kind === "job")
    return verb === "pause"
      ? change("post", "/jobs/{job}/pause", { path: { job: id }, body })
      : change("post", "/jobs/{job}/resume", { path: { job: id } });
  if (kind === "queue")
    return verb === "pause"
      ? change("post", "/queues/{queue}/pause", { path: { queue: id }, body })
      : change("post", "/queues/{queue}/resume", { path: { queue: id } });
  return verb === "pause"
    ? change("post", "/schedules/{schedule}/pause", { path: { schedule: id }, body })
    : change("post", "/schedules/{schedule}/resume", { path: { schedule: id } });
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
