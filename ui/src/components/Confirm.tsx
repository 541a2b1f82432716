import { type FormEvent, type ReactNode, useState } from "react";
import type { Problem } from "../api/problem";
import { Button } from "./Button";
import { Dialog, FormFoot } from "./Dialog";
import { TextField } from "./Field";

interface Props {
  // The question with its number: "Replay 412 dead letters?".
  title: string;
  // What happens, and what does not.
  children?: ReactNode;
  // The way back says what stays: "Keep them". Never Cancel.
  keep: string;
  // The verb with its number: "Replay 412". Never OK.
  act: string;
  // Whether a note is asked for, which everybody sees, as with a pause.
  hasNote?: boolean;
  isBusy?: boolean;
  problem?: Problem | null;
  onAct: (note: string) => void;
  onKeep: () => void;
}

export function Confirm({
  title,
  children,
  keep,
  act,
  hasNote = false,
  isBusy = false,
  problem,
  onAct,
  onKeep,
}: Props) {
  const [note, setNote] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!isBusy) onAct(note.trim());
  };
  return (
    <Dialog title={title} onClose={onKeep}>
      <form onSubmit={submit} className="col">
        {children !== undefined && <div className="d2">{children}</div>}
        {hasNote && (
          <TextField
            label="note"
            placeholder="why; shown to everybody"
            value={note}
            onChange={setNote}
            maxLength={200}
            data-autofocus
          />
        )}
        {problem && <p className="sm c-failed">{problem.message}</p>}
        <FormFoot>
          <Button onClick={onKeep}>{keep}</Button>
          <Button kind="primary" type="submit" disabled={isBusy} data-autofocus={hasNote ? undefined : true}>
            {act}
          </Button>
        </FormFoot>
      </form>
    </Dialog>
  );
}
