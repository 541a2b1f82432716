import { Page } from "../app/Page";
import { Panel } from "../components/Panel";
import { Segmented } from "../components/Segmented";
import { Empty, Loaded } from "../components/States";
import { Verdict } from "../components/Verdict";
import { useApi } from "../hooks/useApi";
import { useUrlState } from "../hooks/useUrlState";
import { FindingCard } from "./alerts/FindingCard";
import { supportOf, verdictOf } from "./alerts/words";
import type { Finding } from "./findings/types";
import { useHeld } from "./findings/useHeld";
import { NothingNeeded } from "./overview/NothingNeeded";

const CHOICES = [
  { value: "all", label: "All" },
  { value: "critical", label: "Critical" },
  { value: "warning", label: "Warnings" },
];

// Everything that needs attention, with what it means and its remedy.
export default function Alerts() {
  const url = useUrlState();
  const chosen = url.one("severity") ?? "all";
  const findings = useApi("/findings", {}, { live: ["pulse", "changes"], everyMs: 2000, repeatMs: 15_000 });
  const all = findings.data?.items ?? [];
  return (
    <Page title="Alerts" verdict={findings.data && verdictOf(all)}>
      <Loaded what="The findings" query={findings}>
        {() => (
          <div className="stack">
            <Verdict
              text={verdictOf(all)}
              support={supportOf(all)}
              actions={
                all.length > 0 && (
                  <Segmented
                    label="Severity"
                    value={chosen}
                    options={CHOICES}
                    onChange={(value) => url.set({ severity: value === "all" ? null : value })}
                  />
                )
              }
            />
            {all.length === 0 ? (
              <NothingNeeded />
            ) : (
              <Cards findings={all.filter((one) => chosen === "all" || one.severity === chosen)} />
            )}
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function Cards({ findings }: { findings: readonly Finding[] }) {
  const { rows, hold } = useHeld(findings, (finding) => finding.findingId);
  return (
    <Panel isFlush>
      {rows.length === 0 ? (
        <Empty title="None of this severity" />
      ) : (
        <div {...hold}>
          <ul>
            {rows.map(({ key, item, isGone }) => (
              <FindingCard key={key} finding={item} isGone={isGone} />
            ))}
          </ul>
        </div>
      )}
    </Panel>
  );
}
