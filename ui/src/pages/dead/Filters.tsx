import { type ReactNode, useEffect, useState } from "react";
import { Icon } from "../../components/Icon";
import { Segmented } from "../../components/Segmented";
import { useApi } from "../../hooks/useApi";
import { useUrlState } from "../../hooks/useUrlState";
import { reasonWords } from "../../lib/reasons";
import css from "./Dead.module.css";

export const VIEWS = ["error", "job", "list"] as const;
export type View = (typeof VIEWS)[number];

const LABELS: Record<View, string> = { error: "By error", job: "By job", list: "List" };
const CAME = [
  { value: "", label: "any time" },
  { value: "1h", label: "in the last hour" },
  { value: "24h", label: "in the last 24 hours" },
  { value: "7d", label: "in the last 7 days" },
];
const TYPING_MS = 300;

export function Filters({ view }: { view: View }) {
  const url = useUrlState();
  const counted = { of: "executions", dead: true } as const;
  const jobs = useApi("/counts", { query: { ...counted, by: "job" } }, { live: ["pulse"], everyMs: 10_000 });
  const reasons = useApi("/counts", { query: { ...counted, by: "reason" } }, { live: ["pulse"], everyMs: 10_000 });
  return (
    <div className="row wrap">
      <Segmented
        label="View"
        value={view}
        options={VIEWS.map((value) => ({ value, label: LABELS[value] }))}
        onChange={(next) => url.set({ view: next === "error" ? null : next, group: null, cursor: null })}
      />
      <Choice name="job" values={(jobs.data?.groups ?? []).map((group) => group.value ?? "")} />
      <Choice name="reason" values={(reasons.data?.groups ?? []).map((group) => group.value ?? "")} />
      {view === "error" && (
        <Labelled label="came">
          <select
            aria-label="came"
            value={url.one("came") ?? ""}
            onChange={(event) => url.set({ came: event.target.value })}
          >
            {CAME.map((one) => (
              <option key={one.value} value={one.value}>
                {one.label}
              </option>
            ))}
          </select>
        </Labelled>
      )}
      {view !== "job" && <ErrorText />}
    </div>
  );
}

function Choice({ name, values }: { name: string; values: readonly string[] }) {
  const url = useUrlState();
  const value = url.one(name) ?? "";
  const all = value === "" || values.includes(value) ? values : [...values, value];
  return (
    <Labelled label={name}>
      <select
        aria-label={name}
        value={value}
        onChange={(event) => url.set({ [name]: event.target.value, cursor: null })}
      >
        <option value="">any</option>
        {all.map((one) => (
          <option key={one} value={one}>
            {name === "reason" ? reasonWords(one) : one}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

function Labelled({ label, children }: { label: string; children: ReactNode }) {
  return (
    <span className={css.filter}>
      <span className="d3">{label}</span> {children}
    </span>
  );
}

function ErrorText() {
  const url = useUrlState();
  const inUrl = url.one("q") ?? "";
  const [text, setText] = useState(inUrl);
  const { set } = url;
  useEffect(() => {
    if (text === inUrl) return;
    const timer = setTimeout(() => set({ q: text, cursor: null }, { replace: true }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, inUrl, set]);
  return (
    <span className={`${css.filter} ${css.text}`}>
      <Icon name="search" />
      <input
        aria-label="Text of the error"
        placeholder="Text of the error"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
    </span>
  );
}
