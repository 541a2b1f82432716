import { Icon } from "../../components/Icon";
import { useIsPhone, useIsTight } from "../../hooks/useMedia";
import { rangeWords, useTimeRange } from "../../hooks/useTimeRange";
import { useUrlState } from "../../hooks/useUrlState";
import { useZone } from "../../hooks/useZone";
import { capped } from "../../lib/format";
import { clockTime } from "../../lib/zone";
import { withLink } from "../findings/subject";
import { AllChanges } from "./AllChanges";
import { type ChangeGroup, foremost, iconOf, wordsOf } from "./changeGroups";
import css from "./WhatChanged.module.css";

const MOST = 3;
const MOST_TIGHT = 2;

interface Props {
  groups: readonly ChangeGroup[];
  number: number;
  hasMore: boolean;
}

// The newest changes, in one line under the charts, which mark their times.
export function WhatChanged({ groups, number, hasMore }: Props) {
  const { since } = useTimeRange();
  const url = useUrlState();
  const isPhone = useIsPhone();
  const isTight = useIsTight();
  const shown = foremost(groups, isTight && !isPhone ? MOST_TIGHT : MOST);
  const isOpen = url.one("changes") !== null;
  return (
    <div className={css.changed}>
      <span className="row d2">
        {!isPhone && <Mark />}
        What changed
      </span>
      {shown.length === 0 && <span className="gr d3">Nothing in the {rangeWords(since)}</span>}
      {shown.length > 0 && (
        <ul className={css.list}>
          {shown.map((group) => (
            <li key={group.key}>
              <One group={group} />
            </li>
          ))}
        </ul>
      )}
      {number > 0 && (
        <button type="button" className={`ln ${css.all}`} onClick={() => url.set({ changes: "all" })}>
          {isPhone
            ? `All ${capped(number, hasMore)}`
            : `All ${capped(number, hasMore)} changes in the ${rangeWords(since)}`}
        </button>
      )}
      {isOpen && <AllChanges onClose={() => url.set({ changes: null })} />}
    </div>
  );
}

// The line of the charts that stands for a change.
function Mark() {
  return (
    <svg width="4" height="14" aria-hidden="true">
      <title>a change, in the charts</title>
      <path d="M2 0v14" stroke="var(--ink-2)" strokeWidth="1.5" strokeDasharray="3 2" />
    </svg>
  );
}

function One({ group }: { group: ChangeGroup }) {
  const { zone } = useZone();
  const [first] = group.changes;
  const text = wordsOf(group);
  const by = first?.actor == null ? "" : ` by ${first.actor}`;
  return (
    <span className="row" title={group.changes.map((change) => change.text).join("\n")}>
      <Icon name={iconOf(group.kind)} className={group.kind === "worker_lost" ? "c-failed" : ""} />
      <span className="el">
        <span className="tab">{clockTime(new Date(group.at), zone)}</span>{" "}
        {first !== undefined && group.changes.length === 1 ? withLink(text, first.subject) : text}
        {by}
      </span>
    </span>
  );
}
