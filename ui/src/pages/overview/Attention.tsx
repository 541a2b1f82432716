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
  const shown = hasAll ? rows : worst(rows, most);
  const isFoldable = rows.filter((row) => !row.isGone).length > most;
  const note = isPhone ? "worst first" : `${count(overview.findingCount)}, worst first`;
  return (
    <Panel title="Needs attention" note={note} isFlush>
      <div {...hold}>
        <FindingList rows={shown} />
        <MoreFindings
          hidden={rows.slice(shown.length).map((row) => row.item)}
          count={overview.findingCount - shown.filter((row) => !row.isGone).length}
          canFold={hasAll && isFoldable}
        />
      </div>
    </Panel>
  );
}

// The first rows. One that is settled and still on screen takes no place of another.
function worst<T extends { isGone: boolean }>(rows: readonly T[], most: number): readonly T[] {
  let live = 0;
  const end = rows.findIndex((row) => !row.isGone && ++live > most);
  return end < 0 ? rows : rows.slice(0, end);
}
