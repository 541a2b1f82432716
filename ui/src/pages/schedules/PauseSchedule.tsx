import { useState } from "react";
import { change } from "../../api/client";
import { useMay } from "../../api/session";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { useAction } from "../../hooks/useAction";
import { useKeys } from "../../hooks/useKeys";
import type { Schedule } from "./words";

// Pause asks for a note; resume is undone by another pause.
export function PauseSchedule({ schedule }: { schedule: Schedule }) {
  const may = useMay();
  const [isAsking, setAsking] = useState(false);
  const path = { schedule: schedule.scheduleId };
  const pause = useAction((note: string) => change("post", "/schedules/{schedule}/pause", { path, body: { note } }), {
    done: () => ({
      text: `Schedule ${schedule.name} paused.`,
      action: { label: "Undo: resume", run: () => void resume.run() },
    }),
    failed: "Not paused",
  });
  const resume = useAction(() => change("post", "/schedules/{schedule}/resume", { path }), {
    done: () => ({
      text: `Schedule ${schedule.name} resumed.`,
      action: { label: "Undo: pause again", run: () => void pause.run(schedule.paused?.note ?? "") },
    }),
    failed: "Not resumed",
  });
  const canPause = may("operate") && schedule.paused === null;
  useKeys(canPause ? { p: { does: `pause schedule ${schedule.name}`, run: () => setAsking(true) } } : {});
  if (!may("operate")) return null;
  if (schedule.paused !== null)
    return (
      <Button disabled={resume.isBusy} onClick={() => void resume.run()}>
        Resume
      </Button>
    );
  const act = async (note: string) => {
    if ((await pause.run(note)) !== undefined) setAsking(false);
  };
  return (
    <>
      <Button onClick={() => setAsking(true)}>Pause…</Button>
      {isAsking && (
        <Confirm
          title={`Pause schedule ${schedule.name}?`}
          keep="Keep it active"
          act="Pause it"
          hasNote
          isBusy={pause.isBusy}
          problem={pause.problem}
          onKeep={() => setAsking(false)}
          onAct={(note) => void act(note)}
        >
          No tick starts until it is resumed, and those of the pause are not made up for. What runs continues to its
          end.
        </Confirm>
      )}
    </>
  );
}
