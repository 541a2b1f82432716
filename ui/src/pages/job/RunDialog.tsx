import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";
import { change } from "../../api/client";
import { type Problem, problemOf } from "../../api/problem";
import type { JobForm } from "../../api/schema";
import { Button } from "../../components/Button";
import { Dialog, FormFoot } from "../../components/Dialog";
import { ChoiceField, TextArea, TextField } from "../../components/Field";
import { Loaded } from "../../components/States";
import { useAction } from "../../hooks/useAction";
import { useApi } from "../../hooks/useApi";
import { argumentsInLine } from "../../lib/format";
import { argumentsOf, type Parameter, parametersOf, typedOf } from "./form";
import type { Job } from "./useRuns";

// A form made of the job's parameters. The server checks what is typed before anything is started.
export function RunDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const form = useApi("/jobs/{job}/parameters", { path: { job: job.jobId } });
  return (
    <Dialog title={`Run ${job.name}`} onClose={onClose} isWide>
      <Loaded what="The parameters" query={form}>
        {(data) => <Form job={job} form={data} onClose={onClose} />}
      </Loaded>
    </Dialog>
  );
}

function Form({ job, form, onClose }: { job: Job; form: JobForm; onClose: () => void }) {
  const [, go] = useLocation();
  const parameters = parametersOf(form.schema, form.arguments);
  const last = form.lastArguments as Record<string, unknown> | null;
  const [typed, setTyped] = useState<Record<string, string>>({});
  const [checked, setChecked] = useState<Problem | "good" | null>(null);
  const send = (dryRun: boolean) =>
    change("post", "/jobs/{job}/trigger", {
      path: { job: job.jobId },
      query: { dryRun },
      body: { arguments: argumentsOf(parameters, typed) },
    });
  const start = useAction(() => send(false), {
    done: (answer) => {
      const id = "executionId" in answer ? String(answer.executionId) : null;
      const text = `${job.name} is ${job.state === "paused" ? "accepted; it waits while the job is paused" : "started"}.`;
      return id === null ? text : { text, action: { label: "Open it", run: () => go(`/executions/${id}`) } };
    },
    failed: "Not started",
  });
  const problem = checked === "good" ? null : (checked ?? start.problem);
  const check = async () => {
    try {
      await send(true);
      setChecked("good");
    } catch (error) {
      setChecked(problemOf(error));
    }
  };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setChecked(null);
    if ((await start.run()) !== undefined) onClose();
  };
  const named = new Set(parameters.map((one) => `/arguments/${one.name}`));
  const others = (problem?.flaws ?? []).filter((flaw) => !named.has(flaw.pointer ?? ""));
  return (
    <form className="col" onSubmit={(event) => void submit(event)}>
      {parameters.length === 0 && <p className="d2">It takes no arguments.</p>}
      {last !== null && parameters.length > 0 && (
        <div className="row wrap">
          <Button isSmall onClick={() => setTyped(typedFrom(parameters, last))}>
            Take the arguments of the last run
          </Button>
          <span className="sm d3 mono el" title={argumentsInLine(last)}>
            {argumentsInLine(last)}
          </span>
        </div>
      )}
      {parameters.map((parameter) => (
        <One
          key={parameter.name}
          parameter={parameter}
          value={typed[parameter.name] ?? ""}
          error={flawOf(problem, parameter.name)}
          onChange={(value) => {
            setTyped({ ...typed, [parameter.name]: value });
            setChecked(null);
          }}
          onLeave={() => void check()}
        />
      ))}
      {problem !== null && others.length + (problem.flaws.length === 0 ? 1 : 0) > 0 && (
        <p className="sm c-failed" role="alert">
          {others[0]?.detail ?? problem.message}
        </p>
      )}
      <FormFoot>
        <span className="sm d3 gr" role="status">
          {checked === "good" && "The server accepts these arguments."}
        </span>
        <Button onClick={onClose}>Start nothing</Button>
        <Button kind="primary" type="submit" icon="play" disabled={start.isBusy}>
          Run {job.name.length > 32 ? "it" : job.name}
        </Button>
      </FormFoot>
    </form>
  );
}

interface OneProps {
  parameter: Parameter;
  value: string;
  error: string | null;
  onChange: (value: string) => void;
  onLeave: () => void;
}

function One({ parameter, value, error, onChange, onLeave }: OneProps) {
  const { name, kind, hint, isRequired, usual } = parameter;
  const words = isRequired ? hint : `${hint}, optional`;
  const placeholder = usual === undefined ? undefined : `${typedOf(parameter, usual)}, if left empty`;
  if (kind === "boolean" || kind === "choice") {
    const choices = kind === "boolean" ? [true, false] : parameter.choices;
    const empty = {
      value: "",
      label: usual === undefined ? "as the job has it" : `${typedOf(parameter, usual)}, as usual`,
    };
    const options = choices.map((one) => ({ value: typedOf(parameter, one), label: typedOf(parameter, one) }));
    return (
      <ChoiceField
        label={name}
        hint={words}
        error={error}
        value={value}
        options={[empty, ...options]}
        onChange={onChange}
      />
    );
  }
  const shared = {
    label: name,
    hint: words,
    error,
    value,
    placeholder,
    onChange,
    onBlur: value === "" ? undefined : onLeave,
  };
  return kind === "json" ? (
    <TextArea {...shared} rows={3} spellCheck={false} />
  ) : (
    <TextField {...shared} inputMode={kind === "number" ? "decimal" : undefined} />
  );
}

function typedFrom(parameters: readonly Parameter[], given: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(parameters.map((one) => [one.name, typedOf(one, given[one.name])]));
}

// "charge(): argument 'order': expected text" without its beginning, which the label says already.
function flawOf(problem: Problem | null, name: string): string | null {
  const flaw = problem?.flaws.find((one) => one.pointer === `/arguments/${name}`);
  return flaw?.detail?.replace(/^[^:]*\(\): (argument '[^']*': )?/, "") ?? null;
}
