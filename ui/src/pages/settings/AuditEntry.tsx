import type { Item } from "../../api/types";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Facts } from "../../components/Facts";
import { Json } from "../../components/Json";
import { Time } from "../../components/Time";

// One change with its values as a whole.
export function AuditEntry({ entry, onClose }: { entry: Item<"/audit">; onClose: () => void }) {
  return (
    <Dialog
      title={`${entry.action} of ${entry.subject}`}
      onClose={onClose}
      isWide
      foot={<Button onClick={onClose}>Close</Button>}
    >
      <Facts
        of={{
          when: <Time at={entry.at} />,
          who: entry.actor,
          from: entry.address,
          before: entry.before === null ? null : <Json value={entry.before} label="the value before" />,
          after: entry.after === null ? null : <Json value={entry.after} label="the value after" />,
        }}
      />
    </Dialog>
  );
}
