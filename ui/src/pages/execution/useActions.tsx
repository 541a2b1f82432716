import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { change } from "../../api/client";
import { useMay } from "../../api/session";
import { Button } from "../../components/Button";
import type { MenuEntry } from "../../components/MoreMenu";
import { MoreMenu } from "../../components/MoreMenu";
import { useAction } from "../../hooks/useAction";
import { useKeys } from "../../hooks/useKeys";
import { useIsPhone } from "../../hooks/useMedia";
import { hasEnded } from "../../lib/states";
import type { Execution } from "./attempt";
import { ChangesDialog } from "./ChangesDialog";
import { CancelDialog, DiscardDialog, PriorityDialog, ReplayDialog } from "./dialogs";

type Asked = "replay" | "changes" | "discard" | "cancel" | "priority";

interface Actions {
  // The buttons, and on a phone the same in a bar.
  buttons: ReactNode;
  hasAny: boolean;
  dialog: ReactNode;
}

// What the viewer may do with the execution as it is. A step of a run is not replayed: the run is retried.
export function useActions(execution: Execution, isDead: boolean): Actions {
  const may = useMay();
  const isPhone = useIsPhone();
  const [asked, setAsked] = useState<Asked | null>(null);
  const [, go] = useLocation();
  const id = execution.executionId;
  const runNow = useAction(
    () => change("patch", "/executions/{execution}", { path: { execution: id }, body: { runAt: "now" } }),
    {
      done: () => `${execution.job} is queued.`,
      failed: "Not queued",
    },
  );
  const isEnded = hasEnded(execution.status);
  const isStep = execution.runId !== null && execution.runId !== id;
  const operates = may("operate");
  const canReplay = operates && isEnded && !isStep;
  const canCancel = operates && !isEnded;
  const canWait = operates && ["queued", "scheduled", "retrying", "waiting"].includes(execution.status);
  const ask = (what: Asked) => () => setAsked(what);
  useKeys({
    ...(canReplay ? { r: { does: "replay it", run: ask("replay") } } : {}),
    ...(canCancel ? { c: { does: "cancel it", run: ask("cancel") } } : {}),
  });
  const isPrimary = execution.status === "failed";
  const entries: MenuEntry[] = [
    ...(canReplay && isPhone ? [{ label: "Replay with changes…", run: ask("changes") }] : []),
    { label: "Copy the id", icon: "copy", run: () => void navigator.clipboard.writeText(id) },
    {
      label: "Copy the command rota show",
      icon: "copy",
      run: () => void navigator.clipboard.writeText(`rota show ${id}`),
    },
    {
      label: `All executions of ${execution.job}`,
      icon: "list",
      run: () => go(`/executions?job=${encodeURIComponent(execution.job)}`),
    },
  ];
  const buttons = (
    <>
      {canReplay && (
        <Button kind={isPrimary ? "primary" : "plain"} icon="arrow-circle" title="r" onClick={ask("replay")}>
          Replay…
        </Button>
      )}
      {canReplay && !isPhone && <Button onClick={ask("changes")}>Replay with changes…</Button>}
      {operates && isDead && !isStep && <Button onClick={ask("discard")}>Discard…</Button>}
      {operates && isEnded && isStep && <Button onClick={() => go(`/runs/${execution.runId}`)}>Open the run</Button>}
      {canWait && ["scheduled", "retrying"].includes(execution.status) && (
        <Button icon="play" disabled={runNow.isBusy} onClick={() => void runNow.run()}>
          Run now
        </Button>
      )}
      {canCancel && execution.cancelRequestedAt === null && (
        <Button title="c" onClick={ask("cancel")}>
          Cancel…
        </Button>
      )}
      {canWait && <Button onClick={ask("priority")}>Raise priority…</Button>}
      <MoreMenu label="More about it" entries={entries} />
    </>
  );
  const close = () => setAsked(null);
  const dialogs: Record<Asked, ReactNode> = {
    replay: <ReplayDialog execution={execution} onClose={close} />,
    changes: <ChangesDialog execution={execution} onClose={close} />,
    discard: <DiscardDialog execution={execution} onClose={close} />,
    cancel: <CancelDialog execution={execution} onClose={close} />,
    priority: <PriorityDialog execution={execution} onClose={close} />,
  };
  return { buttons, hasAny: operates, dialog: asked === null ? null : dialogs[asked] };
}
