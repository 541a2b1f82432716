import { type FormEvent, useState } from "react";
import { useMay } from "../../api/session";
import { Button } from "../../components/Button";
import { Dialog, FormFoot } from "../../components/Dialog";
import { ChoiceField, TextArea, TextField } from "../../components/Field";
import { useAction } from "../../hooks/useAction";
import { useApi } from "../../hooks/useApi";
import { useUrlState } from "../../hooks/useUrlState";
import { type Draft, EMPTY, make, TRIGGERS, useDryRun } from "./draft";
import { Preview } from "./Preview";

// For those who may define. Absent for others.
export function NewSchedule() {
  const may = useMay();
  const [isOpen, setOpen] = useState(false);
  if (!may("define")) return null;
  return (
    <>
      <Button icon="plus" onClick={() => setOpen(true)}>
        New schedule…
      </Button>
      {isOpen && <ScheduleDialog onClose={() => setOpen(false)} />}
    </>
  );
}

const OVERLAPS = ["skip", "queue_one", "queue_all", "cancel_previous", "allow"];
const CATCH_UPS = ["last", "none", "all"];

// Each change is checked by a dry run, which answers with the next ten ticks.
function ScheduleDialog({ onClose }: { onClose: () => void }) {
  const url = useUrlState();
  const jobs = useApi("/jobs", { query: { limit: 1000, fields: "name,app" } });
  const [draft, setDraft] = useState<Draft>(EMPTY);
  const put = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const checked = useDryRun(draft);
  const flaw = (name: string) => checked.problem?.flawAt(`/${name}`);
  const create = useAction(() => make(draft), {
    done: (made) => `Schedule ${made.name} made: ${made.words}.`,
    failed: "Not made",
  });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const made = checked.preview === null ? undefined : await create.run();
    if (made === undefined) return;
    onClose();
    url.set({ of: made.name, cursor: null });
  };
  const names = [...new Set((jobs.data?.items ?? []).map((job) => job.name ?? ""))];
  return (
    <Dialog title="New schedule" onClose={onClose} isWide>
      <form className="col" onSubmit={(event) => void submit(event)}>
        <TextField
          label="job"
          value={draft.job}
          onChange={(job) => put({ job })}
          error={flaw("job")}
          list="schedule-jobs"
          autoComplete="off"
          data-autofocus
        />
        <datalist id="schedule-jobs">
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <TextField
          label="name"
          placeholder={draft.job || "that of the job"}
          value={draft.name}
          onChange={(name) => put({ name })}
          error={flaw("name")}
        />
        <ChoiceField
          label="fires"
          value={draft.trigger}
          options={TRIGGERS.map(({ value, label }) => ({ value, label }))}
          onChange={(trigger) => put({ trigger: trigger as Draft["trigger"], when: "" })}
        />
        <TextField
          label={draft.trigger}
          placeholder={TRIGGERS.find(({ value }) => value === draft.trigger)?.example}
          value={draft.when}
          onChange={(when) => put({ when })}
          error={flaw(draft.trigger)}
        />
        <TextField
          label="time zone"
          placeholder="Europe/Berlin"
          value={draft.tz}
          onChange={(tz) => put({ tz })}
          error={flaw("tz")}
        />
        <ChoiceField
          label="overlap"
          hint="if the run before has not ended"
          value={draft.overlap}
          options={OVERLAPS.map((value) => ({ value, label: value.replaceAll("_", " ") }))}
          onChange={(overlap) => put({ overlap })}
          error={flaw("overlap")}
        />
        <ChoiceField
          label="catch up"
          hint="ticks that were missed while no worker ran"
          value={draft.catchUp}
          options={CATCH_UPS.map((value) => ({ value, label: value }))}
          onChange={(catchUp) => put({ catchUp })}
          error={flaw("catchUp")}
        />
        <TextArea
          label="arguments"
          hint="as JSON"
          rows={2}
          value={draft.arguments}
          onChange={(text) => put({ arguments: text })}
          error={checked.badJson ?? flaw("arguments")}
        />
        <Preview checked={checked} />
        {create.problem && <p className="sm c-failed">{create.problem.message}</p>}
        <FormFoot>
          <Button onClick={onClose}>Make none</Button>
          <Button kind="primary" type="submit" disabled={checked.preview === null || create.isBusy}>
            Make the schedule
          </Button>
        </FormFoot>
      </form>
    </Dialog>
  );
}
