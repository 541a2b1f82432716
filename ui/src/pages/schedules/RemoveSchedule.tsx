import { useState } from "react";
import { change } from "../../api/client";
import { useMay } from "../../api/session";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { useAction } from "../../hooks/useAction";
import { useUrlState } from "../../hooks/useUrlState";
import type { Schedule } from "./words";

// Only a schedule that was made at run time: those of code and of job definitions are changed there.
export function RemoveSchedule({ schedule }: { schedule: Schedule }) {
  const may = useMay();
  const url = useUrlState();
  const [isAsking, setAsking] = useState(false);
  const remove = useAction(
    async () => {
      await change("delete", "/schedules/{schedule}", { path: { schedule: schedule.scheduleId } });
      return true;
    },
    { done: () => `Schedule ${schedule.name} removed.`, failed: "Not removed" },
  );
  if (!may("define") || schedule.origin !== "run_time") return null;
  const act = async () => {
    if ((await remove.run()) === undefined) return;
    setAsking(false);
    url.set({ of: null, cursor: null }, { replace: true });
  };
  return (
    <>
      <Button onClick={() => setAsking(true)}>Remove…</Button>
      {isAsking && (
        <Confirm
          title={`Remove schedule ${schedule.name}?`}
          keep="Keep it"
          act="Remove it"
          isBusy={remove.isBusy}
          problem={remove.problem}
          onKeep={() => setAsking(false)}
          onAct={() => void act()}
        >
          It has no more ticks. Its executions and its ledger stay in the history.
        </Confirm>
      )}
    </>
  );
}
