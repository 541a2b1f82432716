import { ButtonLink } from "../../components/Button";
import { Pager } from "../../components/Pager";
import { Panel } from "../../components/Panel";
import { Empty, Loaded } from "../../components/States";
import { useApi } from "../../hooks/useApi";
import { useUrlState } from "../../hooks/useUrlState";
import { count } from "../../lib/format";
import { FIELDS } from "../executions/columns";
import { ExecutionTable } from "../executions/ExecutionTable";
import { addressOf } from "../executions/filter";
import type { Job } from "./useRuns";

export function ExecutionsTab({ job }: { job: Job }) {
  const url = useUrlState();
  const cursor = url.one("cursor");
  const query = { job: [job.name], app: [job.app], limit: 50, fields: FIELDS, ...(cursor === null ? {} : { cursor }) };
  const list = useApi("/executions", { query }, { live: ["pulse"], everyMs: 2000 });
  const turn = (to: string | null | undefined) => (to ? () => url.set({ cursor: to }) : undefined);
  const search = `job=${encodeURIComponent(job.name)}&app=${encodeURIComponent(job.app)}&since=all`;
  return (
    <Panel
      title="Executions"
      isFlush
      right={
        <ButtonLink isSmall href={`/executions?${search}`}>
          Filter and act on many
        </ButtonLink>
      }
    >
      <Loaded what="Executions" query={list} rows={6}>
        {({ items, previousCursor, nextCursor }) =>
          items.length === 0 ? (
            <Empty title="No execution yet">
              <span>Press “Run…” above to start one.</span>
            </Empty>
          ) : (
            <>
              <ExecutionTable rows={items} href={(id) => addressOf(id, search)} isOfOneJob />
              <Pager newer={turn(previousCursor)} older={turn(nextCursor)}>
                {count(items.length)} shown
              </Pager>
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}
