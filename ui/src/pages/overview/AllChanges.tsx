import { Button } from "../../components/Button";
import { type Column, DataTable } from "../../components/DataTable";
import { Dialog } from "../../components/Dialog";
import { Icon } from "../../components/Icon";
import { Loaded } from "../../components/States";
import { Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { rangeWords, useTimeRange } from "../../hooks/useTimeRange";
import { withLink } from "../findings/subject";
import css from "./AllChanges.module.css";
import { type Change, iconOf } from "./changeGroups";

const COLUMNS: readonly Column<Change>[] = [
  { key: "at", head: "time", cell: (change) => <Time at={change.at} />, width: 110 },
  {
    key: "what",
    head: "what",
    cell: (change) => (
      <span title={change.text}>
        <Icon name={iconOf(change.kind)} /> {withLink(change.text, change.subject)}
      </span>
    ),
  },
  { key: "who", head: "who", cell: (change) => change.actor ?? "—", width: 110 },
  {
    key: "note",
    head: "note",
    cell: (change) => <span title={change.note ?? ""}>{change.note ?? "—"}</span>,
    width: 180,
  },
];

// All changes of the chosen time, newest first.
export function AllChanges({ onClose }: { onClose: () => void }) {
  const { since, until } = useTimeRange();
  const changes = useApi("/changes", { query: { from: since, to: until ?? undefined, limit: 200 } });
  return (
    <Dialog
      title={`What changed in the ${rangeWords(since)}`}
      isWide
      onClose={onClose}
      foot={
        <Button kind="primary" onClick={onClose} data-autofocus>
          Close
        </Button>
      }
    >
      <Loaded what="The changes" query={changes}>
        {({ items, nextCursor }) => (
          <div className={css.list}>
            <DataTable
              caption="Changes, newest first"
              columns={COLUMNS}
              rows={items}
              rowKey={(change) => change.changeId}
              phone={(change) => (
                <div>
                  <div>{withLink(change.text, change.subject)}</div>
                  <div className="sm d3">
                    <Time at={change.at} /> {change.actor !== null && `by ${change.actor}`} {change.note}
                  </div>
                </div>
              )}
            />
            {nextCursor !== null && <p className="sm d3">Only the newest 200 are shown: choose a shorter time.</p>}
          </div>
        )}
      </Loaded>
    </Dialog>
  );
}
