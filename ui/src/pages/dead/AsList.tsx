import { NewPill } from "../../components/NewPill";
import { Pager } from "../../components/Pager";
import { Empty, Loaded } from "../../components/States";
import { useApi } from "../../hooks/useApi";
import { useSelection } from "../../hooks/useSelection";
import { useUrlState } from "../../hooks/useUrlState";
import { count } from "../../lib/format";
import { Bulk } from "../executions/Bulk";
import { FIELDS } from "../executions/columns";
import { ExecutionTable } from "../executions/ExecutionTable";
import { addressOf, type ExecutionFilter } from "../executions/filter";
import { useFrozen } from "../executions/useFrozen";
import { listAddress } from "./group";

const PAGE = 50;

// The letters one by one, newest first.
export function AsList({ filter }: { filter: ExecutionFilter }) {
  const url = useUrlState();
  const cursor = url.one("cursor");
  const query = { ...filter, limit: PAGE, fields: FIELDS, ...(cursor === null ? {} : { cursor }) };
  const list = useApi("/executions", { query }, { live: ["pulse"], everyMs: 2000 });
  const newest = list.isPlaceholderData ? undefined : list.data?.items;
  const { rows, fresh, show } = useFrozen(JSON.stringify(query), newest, query);
  const selection = useSelection("dead letters", rows, (row) => row.executionId ?? "");
  const search = listAddress(filter).split("?")[1] ?? "";
  const turn = (to: string | null | undefined) => (to ? () => url.set({ cursor: to }) : undefined);
  return (
    <>
      <Loaded what="Dead letters" query={list}>
        {(data) => (
          <>
            {rows.length === 0 ? (
              <Empty title="No dead letter matches" />
            ) : (
              <ExecutionTable
                rows={rows}
                href={(id) => addressOf(id, search)}
                selection={selection}
                before={
                  fresh.number > 0 && cursor === null ? (
                    <NewPill number={fresh.number} isCapped={fresh.isCapped} onShow={show} />
                  ) : undefined
                }
              />
            )}
            <Pager newer={turn(data.previousCursor)} older={turn(data.nextCursor)}>
              {count(rows.length)} shown
            </Pager>
          </>
        )}
      </Loaded>
      <Bulk rows={rows} selection={selection} filter={filter} />
    </>
  );
}
