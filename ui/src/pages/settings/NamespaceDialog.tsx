import { useState } from "react";
import { change } from "../../api/client";
import type { Answer } from "../../api/types";
import { Button } from "../../components/Button";
import { Dialog, FormFoot } from "../../components/Dialog";
import { TextField } from "../../components/Field";
import { Loaded } from "../../components/States";
import { useAction } from "../../hooks/useAction";
import { useApi } from "../../hooks/useApi";

type Detail = Answer<"/namespaces/{namespace}">;
type Quotas = Detail["quotas"];

const LABELS: Record<keyof Quotas, string> = {
  executionsPerS: "executions per second",
  burst: "burst",
  maxDepth: "queued at most",
  maxRunning: "running at most",
  maxJobs: "jobs at most",
  maxSchedules: "schedules at most",
  maxPayloadBytes: "bytes of arguments",
  maxTokens: "tokens at most",
  maxStreams: "streams at most",
};

// Retention and quotas of one namespace. An empty field is no limit.
export function NamespaceDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const namespace = useApi("/namespaces/{namespace}", { path: { namespace: name } });
  return (
    <Dialog title={`Namespace ${name}`} onClose={onClose} isWide>
      <Loaded what="The namespace" query={namespace}>
        {(data) => <Form detail={data} onClose={onClose} />}
      </Loaded>
    </Dialog>
  );
}

function Form({ detail, onClose }: { detail: Detail; onClose: () => void }) {
  const [days, setDays] = useState(detail.hasOwnRetention ? daysOf(detail.retention) : "");
  const [quotas, setQuotas] = useState(() => textsOf(detail.quotas));
  const save = useAction(
    () =>
      change("patch", "/namespaces/{namespace}", {
        path: { namespace: detail.name },
        body: { retention: days === "" ? null : `${days}d`, quotas: numbersOf(quotas) },
      }),
    { done: () => `Namespace ${detail.name} changed.`, failed: "Not changed" },
  );
  const act = async () => {
    if ((await save.run()) !== undefined) onClose();
  };
  return (
    <form
      className="col"
      onSubmit={(event) => {
        event.preventDefault();
        void act();
      }}
    >
      <TextField
        label="history kept"
        placeholder="days; as the setting of the server says, if left empty"
        inputMode="decimal"
        value={days}
        onChange={setDays}
      />
      {(Object.keys(LABELS) as (keyof Quotas)[]).map((key) => (
        <TextField
          key={key}
          label={LABELS[key]}
          placeholder="no limit"
          inputMode="decimal"
          value={quotas[key]}
          onChange={(value) => setQuotas({ ...quotas, [key]: value })}
        />
      ))}
      {save.problem && <p className="sm c-failed">{save.problem.message}</p>}
      <FormFoot>
        <Button onClick={onClose}>Keep as it is</Button>
        <Button kind="primary" type="submit" disabled={save.isBusy}>
          Change {detail.name}
        </Button>
      </FormFoot>
    </form>
  );
}

function daysOf(seconds: number | null): string {
  return seconds === null ? "" : String(seconds / 86_400);
}

function textsOf(quotas: Quotas): Record<keyof Quotas, string> {
  const keys = Object.keys(LABELS) as (keyof Quotas)[];
  return Object.fromEntries(keys.map((key) => [key, String(quotas[key] ?? "")])) as Record<keyof Quotas, string>;
}

function numbersOf(texts: Record<keyof Quotas, string>): Quotas {
  const entries = Object.entries(texts).map(([key, text]) => [key, text.trim() === "" ? null : Number(text)]);
  return Object.fromEntries(entries) as Quotas;
}
