import { useApi } from "../../hooks/useApi";
import { count } from "../../lib/format";
import { lastOf } from "./words";

// "It is the last worker of pool images; 1 execution waits for it." Nothing if another one offers its pools.
export function LastOfPool({ workerId }: { workerId: string }) {
  const workers = useApi("/workers", { query: { limit: 1000 } });
  const load = useApi("/load", {});
  const worker = workers.data?.items.find((one) => one.workerId === workerId);
  if (workers.data === undefined || worker === undefined || load.data === undefined) return null;
  const last = lastOf(worker, workers.data.items);
  if (last.length === 0) return null;
  const waiting = load.data.groups
    .filter((group) => group.app === worker.app && last.includes(group.pool))
    .reduce((sum, group) => sum + group.ready, 0);
  const wait = waiting === 1 ? "1 execution waits" : `${count(waiting)} executions wait`;
  return (
    <p>
      <b>
        It is the last worker of {last.length === 1 ? "pool" : "pools"} {last.join(", ")}
        {waiting > 0 && `; ${wait} for it`}.
      </b>
    </p>
  );
}
