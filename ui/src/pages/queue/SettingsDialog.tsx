import { useState } from "react";
import { change } from "../../api/client";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { ChoiceField, TextField } from "../../components/Field";
import { useAction } from "../../hooks/useAction";

interface Props {
  name: string;
  policy: string;
  maxDepth: number | null;
  onClose: () => void;
}

type Policy = "fifo" | "priority";

export function SettingsDialog({ name, policy, maxDepth, onClose }: Props) {
  const [order, setOrder] = useState(policy);
  const [most, setMost] = useState(maxDepth === null ? "" : String(maxDepth));
  const limit = most.trim() === "" ? null : Number(most);
  const isWrong = limit !== null && !(Number.isInteger(limit) && limit >= 1);
  const put = (before: Policy, depth: number | null) =>
    change("patch", "/queues/{queue}", { path: { queue: name }, body: { policy: before, maxDepth: depth } });
  const back = useAction(() => put(policy as Policy, maxDepth), { done: () => "Undone.", failed: "Not undone" });
  const save = useAction(() => put(order as Policy, limit), {
    done: () => ({ text: `Settings of queue ${name} changed.`, action: { label: "Undo", run: () => void back.run() } }),
    failed: "Not changed",
  });
  const act = async () => {
    if ((await save.run()) !== undefined) onClose();
  };
  return (
    <Dialog
      title={`Settings of queue ${name}`}
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Keep them</Button>
          <Button kind="primary" disabled={isWrong || save.isBusy} onClick={() => void act()}>
            Change settings
          </Button>
        </>
      }
    >
      <ChoiceField
        label="order"
        value={order}
        onChange={setOrder}
        options={[
          { value: "priority", label: "by priority" },
          { value: "fifo", label: "first in, first out" },
        ]}
      />
      <TextField
        label="at most"
        placeholder="any number may wait"
        hint="So many may wait; further ones are refused."
        inputMode="numeric"
        value={most}
        onChange={setMost}
        error={isWrong ? "a whole number of 1 or more" : null}
      />
      <p className="sm d3">A deploy of code that declares this queue changes them again.</p>
      {save.problem && <p className="sm c-failed">{save.problem.message}</p>}
    </Dialog>
  );
}
