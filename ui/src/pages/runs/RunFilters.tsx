import { FilterTokens } from "../../components/FilterTokens";
import { useApi } from "../../hooks/useApi";
import { useUrlState } from "../../hooks/useUrlState";

const STATUSES = ["running", "success", "failed", "cancelled", "queued", "waiting", "scheduled"];

// One value for each filter; the route takes no more.
export function RunFilters() {
  const url = useUrlState();
  const workflows = useApi("/workflows", { query: { limit: 200, fields: "name,app" } });
  const names = [...new Set((workflows.data?.items ?? []).map((one) => one.name ?? ""))];
  const apps = [...new Set((workflows.data?.items ?? []).map((one) => one.app ?? ""))];
  const filters = [
    { name: "workflow", options: names },
    { name: "status", options: STATUSES },
    { name: "app", options: apps },
  ];
  return (
    <FilterTokens
      filters={filters}
      values={{ workflow: url.all("workflow"), status: url.all("status"), app: url.all("app") }}
      onChange={(name, values) => url.set({ [name]: values.at(-1) ?? null, cursor: null })}
    />
  );
}
