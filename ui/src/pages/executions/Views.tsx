import { useState } from "react";
import { useLocation } from "wouter";
import { Button } from "../../components/Button";
import { Dialog, FormFoot } from "../../components/Dialog";
import { TextField } from "../../components/Field";
import { MoreMenu } from "../../components/MoreMenu";
import { useUrlState } from "../../hooks/useUrlState";
import { useSignal } from "../../lib/signal";
import { parsedViews, storedViews } from "./savedViews";

// Filters under a name, kept in the browser.
export function Views() {
  const { search } = useUrlState();
  const [, go] = useLocation();
  const [isSaving, setSaving] = useState(false);
  const views = parsedViews(useSignal(storedViews));
  const current = views.find((view) => view.search === plain(search));
  const keep = (next: typeof views) => storedViews.set(JSON.stringify(next));
  const entries = [
    ...views.map((view) => ({
      label: view.name,
      isOn: view === current,
      run: () => go(`/executions${view.search === "" ? "" : `?${view.search}`}`),
    })),
    ...(current === undefined
      ? []
      : [{ label: `Remove the view ${current.name}`, run: () => keep(views.filter((view) => view !== current)) }]),
  ];
  return (
    <>
      {views.length > 0 && (
        <MoreMenu label="Saved views" word={current?.name ?? "Views"} icon="down" entries={entries} />
      )}
      {current === undefined && <Button onClick={() => setSaving(true)}>Save view…</Button>}
      {isSaving && (
        <SaveView
          taken={views.map((view) => view.name)}
          onClose={() => setSaving(false)}
          onSave={(name) => {
            keep([...views.filter((view) => view.name !== name), { name, search: plain(search) }]);
            setSaving(false);
          }}
        />
      )}
    </>
  );
}

function plain(search: string): string {
  const parameters = new URLSearchParams(search);
  parameters.delete("cursor");
  return parameters.toString();
}

interface SaveProps {
  taken: readonly string[];
  onSave: (name: string) => void;
  onClose: () => void;
}

function SaveView({ taken, onSave, onClose }: SaveProps) {
  const [name, setName] = useState("");
  const isTaken = taken.includes(name.trim());
  return (
    <Dialog title="Save this view?" onClose={onClose}>
      <form
        className="col"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== "") onSave(name.trim());
        }}
      >
        <p className="d2">The filters and the time range are kept under a name, in this browser.</p>
        <TextField label="name" value={name} onChange={setName} maxLength={60} data-autofocus />
        {isTaken && <p className="sm d3">A view of this name is there; it is replaced.</p>}
        <FormFoot>
          <Button onClick={onClose}>Keep it unsaved</Button>
          <Button kind="primary" type="submit" disabled={name.trim() === ""}>
            Save view
          </Button>
        </FormFoot>
      </form>
    </Dialog>
  );
}
