import { useState } from "react";
import { change } from "../../api/client";
import { problemOf } from "../../api/problem";
import type { JobPatch } from "../../api/schema";
import { useMay } from "../../api/session";
import { Button } from "../../components/Button";
import { TextArea } from "../../components/Field";
import { Json } from "../../components/Json";
import { Panel } from "../../components/Panel";
import { useAction } from "../../hooks/useAction";
import type { Job } from "./useRuns";

// The definition as data. Of a job that code declares it is only read, because the next deploy would replace a change.
export function Definition({ job }: { job: Job }) {
  const may = useMay();
  const [isEditing, setEditing] = useState(false);
  if (isEditing) return <Editor job={job} onClose={() => setEditing(false)} />;
  const isData = job.origin !== "code";
  return (
    <Panel
      title={`Definition, version ${job.version}`}
      note={originWords(job)}
      right={
        isData &&
        job.state !== "deleted" &&
        may("define") && (
          <Button isSmall onClick={() => setEditing(true)}>
            Edit definition
          </Button>
        )
      }
    >
      {job.warnings.map((warning) => (
        <p key={warning} className="sm">
          {warning}
        </p>
      ))}
      <Json value={job.definition} label="the definition" />
    </Panel>
  );
}

function originWords(job: Job): string {
  if (job.origin === "code") return `declared in the code of ${job.app}: change it there and deploy`;
  return job.origin === "file"
    ? "from a file; applying the file again replaces changes made here"
    : "made through the API";
}

function Editor({ job, onClose }: { job: Job; onClose: () => void }) {
  const [text, setText] = useState(() => JSON.stringify(job.definition, null, 2));
  const [checked, setChecked] = useState<string | null>(null);
  const parsed = parse(text);
  const send = (dryRun: boolean) =>
    change("put", "/jobs/{job}", {
      path: { job: job.name },
      query: { app: job.app, dryRun },
      body: parsed as JobPatch,
    });
  const save = useAction(() => send(false), {
    done: (answer) => `${job.name} saved${"version" in answer ? ` as version ${answer.version}` : ""}.`,
    failed: "Not saved",
  });
  const check = async () => {
    try {
      await send(true);
      setChecked("The server would accept it.");
    } catch (error) {
      const problem = problemOf(error);
      setChecked([problem.message, ...problem.flaws.slice(1).map((flaw) => flaw.detail ?? "")].join("\n"));
    }
  };
  const isBroken = parsed === null;
  return (
    <Panel
      title={`Edit ${job.name}`}
      note="a change makes a new version"
      right={
        <>
          <Button isSmall onClick={onClose}>
            Keep version {job.version}
          </Button>
          <Button isSmall disabled={isBroken} onClick={() => void check()}>
            Check
          </Button>
          <Button
            isSmall
            kind="primary"
            disabled={isBroken || save.isBusy}
            onClick={() => void save.run().then((done) => done !== undefined && onClose())}
          >
            Save definition
          </Button>
        </>
      }
    >
      <div className="col">
        <TextArea
          label="definition"
          hint="JSON"
          rows={24}
          spellCheck={false}
          value={text}
          error={isBroken ? "This is not a JSON object yet." : (save.problem?.message ?? null)}
          onChange={(value) => {
            setText(value);
            setChecked(null);
          }}
        />
        {checked !== null && (
          <p className="sm" role="status" style={{ whiteSpace: "pre-wrap" }}>
            {checked}
          </p>
        )}
      </div>
    </Panel>
  );
}

function parse(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
