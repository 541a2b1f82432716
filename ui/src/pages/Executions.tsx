import { Page } from "../app/Page";
import { ButtonLink } from "../components/Button";
import { CopyCommand } from "../components/CopyCommand";
import { Kbd } from "../components/Facts";
import { NewPill } from "../components/NewPill";
import { Pager } from "../components/Pager";
import { Panel } from "../components/Panel";
import { RangePicker } from "../components/RangePicker";
import { Empty, Loaded } from "../components/States";
import { useApi } from "../hooks/useApi";
import { useSelection } from "../hooks/useSelection";
import { useTimeRange } from "../hooks/useTimeRange";
import { useUrlState } from "../hooks/useUrlState";
import { capped, count } from "../lib/format";
import { markOf } from "../lib/states";
import { Bulk } from "./executions/Bulk";
import { ColumnChoice } from "./executions/ColumnChoice";
import { FIELDS } from "./executions/columns";
import { ExecutionTable } from "./executions/ExecutionTable";
import { Facets } from "./executions/Facets";
import { addressOf, type ExecutionFilter, filterOf, withTimes } from "./executions/filter";
import { Histogram } from "./executions/Histogram";
import { Narrowing } from "./executions/Narrowing";
import { useFrozen } from "./executions/useFrozen";
import { Views } from "./executions/Views";

const PAGE = 50;

export default function Executions() {
  const url = useUrlState();
  const range = useTimeRange();
  const filter = filterOf(url);
  const narrowed = withTimes(filter, range);
  const cursor = url.one("cursor");
  const query = { ...narrowed, limit: PAGE, fields: FIELDS, ...(cursor === null ? {} : { cursor }) };
  const list = useApi("/executions", { query }, { live: ["pulse"], everyMs: 2000 });
  const total = useApi("/counts", { query: { ...narrowed, of: "executions" } }, { live: ["pulse"], everyMs: 5000 });
  const newest = list.isPlaceholderData ? undefined : list.data?.items;
  const { rows, fresh, show } = useFrozen(JSON.stringify(query), newest, query);
  const selection = useSelection("executions", rows, (row) => row.executionId ?? "");
  const href = (id: string) => addressOf(id, url.search);
  const turn = (to: string | null | undefined) => (to ? () => url.set({ cursor: to }) : undefined);
  return (
    <Page title="Executions" context={<RangePicker />} verdict={total.data && verdictOf(filter, total.data)}>
      <div className="row wrap">
        <Narrowing filter={filter} range={range} />
        {total.data && <span className="sm d3 nw">{capped(total.data.count, total.data.isCapped)} match</span>}
        <Views />
        <span className="not-phone">
          <ColumnChoice />
        </span>
      </div>
      <Histogram filter={filter} range={range} />
      <Panel isFlush>
        <Facets filter={filter} range={range} />
        <Loaded what="Executions" query={list} rows={6}>
          {(data) => (
            <>
              {rows.length === 0 ? (
                <Nothing filter={narrowed} />
              ) : (
                <ExecutionTable
                  rows={rows}
                  href={href}
                  selection={selection}
                  before={
                    fresh.number > 0 && cursor === null ? (
                      <NewPill number={fresh.number} isCapped={fresh.isCapped} onShow={show} />
                    ) : undefined
                  }
                />
              )}
              {(rows.length > 0 || cursor !== null) && (
                <Pager newer={turn(data.previousCursor)} older={turn(data.nextCursor)}>
                  {count(rows.length)} shown
                  <span className="not-phone">
                    {" "}
                    · <Kbd>j</Kbd> <Kbd>k</Kbd> move · <Kbd>x</Kbd> select · <Kbd>Enter</Kbd> open · <Kbd>?</Kbd> all
                    keys
                  </span>
                </Pager>
              )}
            </>
          )}
        </Loaded>
      </Panel>
      <Bulk rows={rows} selection={selection} filter={narrowed} />
    </Page>
  );
}

function Nothing({ filter }: { filter: ExecutionFilter }) {
  const isNarrowed = Object.keys(filter).some((name) => name !== "createdFrom" && name !== "createdTo");
  const isTimed = filter.createdFrom !== undefined;
  const actions =
    isTimed || isNarrowed ? <ButtonLink href="/executions?since=all">Show all executions</ButtonLink> : undefined;
  if (isNarrowed)
    return (
      <Empty title="No execution matches" actions={actions}>
        <span>Drop a filter, or choose a longer time.</span>
      </Empty>
    );
  return (
    <Empty title={isTimed ? "No execution was made in this time" : "No execution yet"} actions={actions}>
      <span>An execution is one requested run of a job. Enqueue one:</span>
      <CopyCommand command="rota enqueue JOB" />
    </Empty>
  );
}

function verdictOf(filter: ExecutionFilter, total: { count: number; isCapped: boolean }): string {
  const status = filter.status?.length === 1 ? ` ${markOf(filter.status[0] ?? "").word.toLowerCase()}` : "";
  const number = capped(total.count, total.isCapped);
  return `${number}${status} ${total.count === 1 ? "execution" : "executions"}`;
}
