import { useState } from "react";
import { change } from "../../api/client";
import { useMe } from "../../api/session";
import { Button } from "../../components/Button";
import { Dialog, FormFoot } from "../../components/Dialog";
import { ChoiceField, TextField } from "../../components/Field";
import { useAction } from "../../hooks/useAction";
import type { Secret } from "./Tokens";

const ROLES = [
  { value: "viewer", label: "viewer: reads everything but audit and tokens" },
  { value: "producer", label: "producer: enqueues, and sees its own executions" },
  { value: "operator", label: "operator: also pauses, cancels, replays, drains" },
  { value: "author", label: "author: also defines jobs, schedules and workflows" },
  { value: "admin", label: "admin: also tokens and audit" },
] as const;

type Role = (typeof ROLES)[number]["value"];

const LIVES = [
  { value: "30d", label: "30 days" },
  { value: "90d", label: "90 days" },
  { value: "365d", label: "one year" },
];

export function CreateToken({ onMade, onClose }: { onMade: (made: Secret) => void; onClose: () => void }) {
  const { data: me } = useMe();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [namespaces, setNamespaces] = useState(me?.namespace ?? "default");
  const [life, setLife] = useState("90d");
  const create = useAction(
    () =>
      change("post", "/tokens", {
        body: { name, role, namespaces: namespaces.split(",").map((one) => one.trim()), expiresIn: life },
      }),
    { failed: "Not made" },
  );
  const act = async () => {
    const made = await create.run();
    if (made === undefined) return;
    onMade({ name: made.name, secret: made.secret });
    onClose();
  };
  return (
    <Dialog title="New token" onClose={onClose}>
      <form
        className="col"
        onSubmit={(event) => {
          event.preventDefault();
          void act();
        }}
      >
        <TextField label="name" hint="who or what uses it" value={name} onChange={setName} required data-autofocus />
        <ChoiceField label="role" value={role} options={ROLES} onChange={(value) => setRole(value as Role)} />
        <TextField
          label="namespaces"
          hint="separated by commas; * for all"
          value={namespaces}
          onChange={setNamespaces}
        />
        <ChoiceField label="expires after" value={life} options={LIVES} onChange={setLife} />
        {create.problem && <p className="sm c-failed">{create.problem.message}</p>}
        <FormFoot>
          <Button onClick={onClose}>Make none</Button>
          <Button kind="primary" type="submit" disabled={create.isBusy || name === ""}>
            Make token
          </Button>
        </FormFoot>
      </form>
    </Dialog>
  );
}
