import { useState } from "react";
import { useMay } from "../../api/session";
import { showToast } from "../../app/toasts";
import { BulkBar } from "../../components/BulkBar";
import { Button } from "../../components/Button";
import { useApi } from "../../hooks/useApi";
import { useKeys } from "../../hooks/useKeys";
import { serverNow } from "../../hooks/useNow";
import type { Selection } from "../../hooks/useSelection";
import { capped, count } from "../../lib/format";
import { hasEnded, markOf, type Status } from "../../lib/states";
import { cautionsOfJobs } from "../dead/against";
import { Cautions } from "../dead/Cautions";
import css from "./Bulk.module.css";
import { BulkDialog } from "./bulk/BulkDialog";
import type { Target, Verb } from "./bulk/verbs";
import { type ExecutionFilter, type ExecutionItem, fixedTimes } from "./filter";

interface Props {
  rows: readonly ExecutionItem[];
  selection: Selection<ExecutionItem>;
  // What the list is narrowed to, with its times.
  filter: ExecutionFilter;
}

interface Asked {
  verb: Verb;
  target: Target;
  isDead: boolean;
  cautions: readonly string[];
}

// Acts on the rows that are chosen, or on all that match. Each button carries the number that it applies to.
export function Bulk({ rows, selection, filter }: Props) {
  const may = useMay();
  const [all, setAll] = useState<{ status: Status; number: number; target: Target } | null>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  const picked = rows.filter(selection.has);
  const status = statusFor(picked, filter);
  const matching = { ...filter, status: status === null ? filter.status : [status] };
  const counts = useApi(
    "/counts",
    { query: { ...matching, of: "executions" } },
    { enabled: selection.count > 0 && status !== null, keep: false },
  );
  const clear = () => {
    setAll(null);
    selection.clear();
  };
  const takeAll = () => {
    if (status === null || counts.data === undefined) return;
    const target = { filter: fixedTimes(matching, serverNow()), asOf: new Date(serverNow()).toISOString() };
    setAll({ status, number: counts.data.count, target });
  };
  const number = all?.number ?? selection.count;
  const picks = all === null ? picksOf(picked) : [{ verbs: verbsOf(all.status), ...all }];
  const ask = async ({ target, status }: Pick, verb: Verb) => {
    const failed = picked.filter((row) => row.status === "failed").map((row) => row.job ?? "");
    const jobs = all === null || !filter.job?.length ? [...new Set(failed)] : filter.job;
    const cautions = verb === "replay" ? await cautionsOfJobs(jobs) : [];
    setAsked({ verb, target: boundTo(verb, target), isDead: status === "failed", cautions });
  };
  const keyOf = (verb: Verb) => {
    const pick = may("operate") ? picks.find(({ verbs }) => verbs.includes(verb)) : undefined;
    return pick === undefined
      ? {}
      : { [verb.charAt(0)]: { does: `${verb} the selected rows`, run: () => void ask(pick, verb) } };
  };
  useKeys({ ...keyOf("replay"), ...keyOf("cancel") });
  return (
    <>
      <BulkBar
        selected={number}
        onClear={clear}
        more={
          all === null && status !== null && counts.data !== undefined && counts.data.count > picked.length ? (
            <button type="button" className={css.all} onClick={takeAll}>
              Select all {capped(counts.data.count, counts.data.isCapped)} {markOf(status).word.toLowerCase()}
            </button>
          ) : (
            all !== null && <span>all that are {markOf(all.status).word.toLowerCase()} and match the filter</span>
          )
        }
      >
        {may("operate") &&
          picks.flatMap((pick) =>
            pick.verbs.map((verb) => (
              <Button key={verb} onClick={() => void ask(pick, verb)}>
                {verb.charAt(0).toUpperCase() + verb.slice(1)} {count(pick.number)}…
              </Button>
            )),
          )}
        {all === null && (
          <Button icon="copy" onClick={() => void copyIds(selection.keys)}>
            Copy {selection.count === 1 ? "id" : "ids"}
          </Button>
        )}
      </BulkBar>
      {asked !== null && (
        <BulkDialog
          verb={asked.verb}
          target={asked.target}
          isDead={asked.isDead && !("ids" in asked.target)}
          warning={asked.cautions.length === 0 ? undefined : <Cautions of={asked.cautions} />}
          onClose={() => setAsked(null)}
          onDone={clear}
        />
      )}
    </>
  );
}

// Which state "select all" is about: that of the filter, else failed ones if one is chosen, else that of the first.
function statusFor(picked: readonly ExecutionItem[], filter: ExecutionFilter): Status | null {
  const only = filter.status?.length === 1 ? filter.status[0] : undefined;
  const found = only ?? picked.find((row) => row.status === "failed")?.status ?? picked[0]?.status;
  return found === undefined ? null : (found as Status);
}

function verbsOf(status: string): Verb[] {
  if (!hasEnded(status)) return ["cancel"];
  return status === "failed" ? ["replay", "discard"] : ["replay"];
}

interface Pick {
  verbs: Verb[];
  number: number;
  target: Target;
  status: string;
}

function picksOf(picked: readonly ExecutionItem[]): Pick[] {
  const verbs: Verb[] = ["cancel", "replay", "discard"];
  return verbs
    .map((verb) => {
      const ids = picked.filter((row) => verbsOf(row.status ?? "").includes(verb)).map((row) => row.executionId ?? "");
      return { verbs: [verb], number: ids.length, target: { ids }, status: "" };
    })
    .filter(({ number }) => number > 0);
}

// All failed ones means the dead letters among them: what was replayed or discarded is not touched again.
function boundTo(verb: Verb, target: Target): Target {
  if ("ids" in target || verb === "cancel" || target.filter.status?.[0] !== "failed") return target;
  return { ...target, filter: { ...target.filter, dead: true } };
}

async function copyIds(ids: readonly string[]): Promise<void> {
  await navigator.clipboard.writeText(ids.join("\n"));
  showToast({ kind: "success", text: `Copied ${ids.length === 1 ? "1 id" : `${count(ids.length)} ids`}.` });
}
