import { useState } from "react";
import { useMay } from "../../api/session";
import { Button } from "../../components/Button";
import { Facts } from "../../components/Facts";
import { Panel } from "../../components/Panel";
import { Loaded } from "../../components/States";
import { useApi } from "../../hooks/useApi";
import { count } from "../../lib/format";
import { waitsInWords } from "../queues/words";
import { SettingsDialog } from "./SettingsDialog";

const ORDERS: Record<string, string> = {
  fifo: "in the order in which they became due",
  priority: "by priority; a level is worth a minute of waiting",
};

export function Settings({ name }: { name: string }) {
  const may = useMay();
  const [isOpen, setOpen] = useState(false);
  const queue = useApi("/queues/{queue}", { path: { queue: name } }, { live: ["pulse", "changes"], everyMs: 5000 });
  return (
    <Panel
      title="Settings"
      right={
        may("define") &&
        queue.data !== undefined && (
          <Button isSmall onClick={() => setOpen(true)}>
            Change…
          </Button>
        )
      }
    >
      <Loaded what="The settings" query={queue}>
        {(found) => (
          <>
            <Facts
              of={{
                order: ORDERS[found.policy] ?? found.policy,
                "at most": found.maxDepth === null ? "any number may wait" : `${count(found.maxDepth)} may wait`,
                scheduled: found.scheduled > 0 ? count(found.scheduled) : null,
                waiting: waitsInWords(found),
                "dead letters": found.dead > 0 ? count(found.dead) : null,
              }}
            />
            {isOpen && (
              <SettingsDialog
                name={name}
                policy={found.policy}
                maxDepth={found.maxDepth}
                onClose={() => setOpen(false)}
              />
            )}
          </>
        )}
      </Loaded>
    </Panel>
  );
}
