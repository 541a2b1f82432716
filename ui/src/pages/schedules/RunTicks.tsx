import { useState } from "react";
import { useMay } from "../../api/session";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { useAction } from "../../hooks/useAction";
import { serverNow } from "../../hooks/useNow";
import { useZone } from "../../hooks/useZone";
import { count, plural } from "../../lib/format";
import { shortTime } from "../../lib/zone";
import { backfill } from "./backfill";
import type { Entry, Schedule } from "./words";

// Starts what a tick, or a row of them, did not start.
export function RunTicks({ schedule, entry }: { schedule: Schedule; entry: Entry }) {
  const may = useMay();
  const { zone } = useZone();
  const [isAsking, setAsking] = useState(false);
  const run = useAction(() => backfill(schedule, entry.at, entry.until, false), {
    done: (started) =>
      started === 0
        ? "Nothing was started: it has run meanwhile."
        : `Started ${plural(started, "tick")} of ${schedule.name}.`,
    failed: "Not started",
  });
  if (!may("operate")) return null;
  const clock = (at: string) => shortTime(new Date(at), zone, new Date(serverNow()));
  const isOne = entry.count === 1;
  const act = async () => {
    if ((await run.run()) !== undefined) setAsking(false);
  };
  return (
    <>
      <Button isSmall onClick={() => setAsking(true)}>
        {isOne ? "Run…" : `Run ${count(entry.count)}…`}
      </Button>
      {isAsking && (
        <Confirm
          title={
            isOne
              ? `Run the tick of ${clock(entry.at)}?`
              : `Run ${count(entry.count)} ticks, ${clock(entry.at)} to ${clock(entry.until)}?`
          }
          keep={isOne ? "Leave it out" : "Leave them out"}
          act={isOne ? "Run it" : `Run ${count(entry.count)}`}
          isBusy={run.isBusy}
          problem={run.problem}
          onKeep={() => setAsking(false)}
          onAct={() => void act()}
        >
          {isOne ? "A new execution" : "A new execution for each"} of job {schedule.job} starts now in queue{" "}
          {schedule.queue}, as the tick would have started it. The ledger then says that it was backfilled.
        </Confirm>
      )}
    </>
  );
}
