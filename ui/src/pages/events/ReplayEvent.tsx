import { useState } from "react";
import { change } from "../../api/client";
import { useMay } from "../../api/session";
import type { Answer } from "../../api/types";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { Check } from "../../components/Field";
import { useAction } from "../../hooks/useAction";
import { plural } from "../../lib/format";

// Delivers an event again: to subscribers that did not have it, or as a new event to all.
export function ReplayEvent({ event }: { event: Answer<"/events/{event}"> }) {
  const may = useMay();
  const [isAsking, setAsking] = useState(false);
  const [force, setForce] = useState(false);
  const replay = useAction(
    () => change("post", "/events/{event}/replay", { path: { event: event.eventId }, body: { force } }),
    {
      done: (answer) => `Event replayed. It was delivered to ${plural(answer?.deliveries ?? 0, "more execution")}.`,
      failed: "Not replayed",
    },
  );
  if (!may("operate")) return null;
  const act = async () => {
    if ((await replay.run()) !== undefined) setAsking(false);
  };
  return (
    <>
      <Button onClick={() => setAsking(true)}>Replay…</Button>
      {isAsking && (
        <Confirm
          title={`Replay ${event.name}?`}
          keep="Leave it"
          act="Replay it"
          isBusy={replay.isBusy}
          problem={replay.problem}
          onKeep={() => setAsking(false)}
          onAct={() => void act()}
        >
          <p>Jobs and workflows that subscribe now and did not have the event get it.</p>
          <Check label="Also deliver it again, as a new event, to those that had it" isOn={force} onChange={setForce} />
        </Confirm>
      )}
    </>
  );
}
