import type { Item } from "../../api/types";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Facts } from "../../components/Facts";
import { Json } from "../../components/Json";
import { Time } from "../../components/Time";
import { decoded } from "./AuditChange";

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
        }}
      />
      {[
        { name: "before", value: entry.before },
        { name: "after", value: entry.after },
      ].map(
        ({ name, value }) =>
          value !== null && (
            <section key={name}>
              <h3 className="sm d3">{name}</h3>
              <Json value={decoded(value)} label={`the value ${name}`} />
            </section>
          ),
      )}
    </Dialog>
  );
}
