import type { Answer } from "../../api/types";
import { Panel } from "../../components/Panel";
import { useIsPhone } from "../../hooks/useMedia";
import { useUrlState } from "../../hooks/useUrlState";
import { count } from "../../lib/format";
import { FindingList } from "../findings/FindingList";
import { useHeld } from "../findings/useHeld";
import { MoreFindings } from "./MoreFindings";
import { NothingNeeded } from "./NothingNeeded";

interface Props {
  overview: Answer<"/overview">;
  most: number;
}

// Findings, worst first. While the pointer is on them they keep their places.
export function Attention({ overview, most }: Props) {
  const isPhone = useIsPhone();
  const hasAll = useUrlState().one("all") !== null;
  const { rows, hold } = useHeld(overview.findings, (finding) => finding.findingId);
  if (rows.length === 0) return <NothingNeeded />;
  const shown = hasAll ? rows : rows.slice(0, most);
  const note = isPhone ? "worst first" : `${count(overview.findingCount)}, worst first`;
  return (
    <Panel title="Needs attention" note={note} isFlush>
      <div {...hold}>
        <FindingList rows={shown} />
        <MoreFindings
          hidden={rows.slice(shown.length).map((row) => row.item)}
          count={overview.findingCount - shown.length}
          canFold={hasAll && rows.length > most}
        />
      </div>
    </Panel>
  );
}
