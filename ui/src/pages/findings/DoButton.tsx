import { useState } from "react";
import { changeAt } from "../../api/client";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { useAction } from "../../hooks/useAction";
import { LastOfPool } from "../workers/LastOfPool";
import { wordsOf } from "./actionWords";
import { noteOf } from "./note";
import type { Finding, FindingAction } from "./types";

interface Props {
  finding: Finding;
  action: FindingAction;
  isSmall?: boolean;
}

// An action of a finding that changes something: asks if the server wants that, sends it, and offers the way back.
export function DoButton({ finding, action, isSmall = true }: Props) {
  const [isAsking, setAsking] = useState(false);
  const words = wordsOf(finding, action);
  const back = useAction(
    (path: string, note: string | null) => changeAt("POST", path, note === null ? undefined : { note }),
    {
      done: () => "Undone.",
      failed: "Not undone",
    },
  );
  const send = useAction(
    async (note: string) => {
      const before = words.undo?.path.includes("/pause") ? await noteOf(finding.subject) : null;
      await changeAt(action.method ?? "POST", action.path ?? "", words.hasNote ? { note } : undefined);
      return before;
    },
    {
      done: (before) => {
        const { undo } = words;
        if (undo === null) return words.done;
        return { text: words.done, action: { label: undo.label, run: () => void back.run(undo.path, before) } };
      },
      failed: words.failed,
    },
  );
  const act = async (note: string) => {
    await send.run(note);
    setAsking(false);
  };
  return (
    <>
      <Button
        isSmall={isSmall}
        disabled={send.isBusy}
        onClick={() => (action.isConfirmed ? setAsking(true) : void act(""))}
      >
        {action.label}
      </Button>
      {isAsking && (
        <Confirm
          title={words.title}
          keep={words.keep}
          act={words.act}
          hasNote={words.hasNote}
          isBusy={send.isBusy}
          problem={send.problem}
          onKeep={() => setAsking(false)}
          onAct={(note) => void act(note)}
        >
          {words.text}
          {finding.subject.kind === "worker" && <LastOfPool workerId={finding.subject.id} />}
        </Confirm>
      )}
    </>
  );
}
