import type { Answer } from "../api/types";
import { Page } from "../app/Page";
import { Button, ButtonLink } from "../components/Button";
import { Icon } from "../components/Icon";
import { Panel } from "../components/Panel";
import { Empty, Loaded } from "../components/States";
import { Time } from "../components/Time";
import { Verdict } from "../components/Verdict";
import { useApi } from "../hooks/useApi";
import { useUrlState } from "../hooks/useUrlState";
import { capped, count } from "../lib/format";
import { AsList } from "./dead/AsList";
import { ByJob } from "./dead/ByJob";
import { Filters, VIEWS, type View } from "./dead/Filters";
import { GroupTable } from "./dead/GroupTable";
import { keyOf } from "./dead/group";
import { Underway } from "./dead/Underway";
import { useStableOrder } from "./dead/useStableOrder";
import type { ExecutionFilter } from "./executions/filter";

type Groups = Answer<"/errors">;

const MOST = 200;

export default function DeadLetters() {
  const url = useUrlState();
  const view: View = VIEWS.find((one) => one === url.one("view")) ?? "error";
  const [jobs, reasons] = [url.all("job"), url.all("reason")];
  const [came, text] = [url.one("came"), url.one("q")];
  const live = { live: ["pulse"], everyMs: 5000 } as const;
  const all = useApi("/errors", { query: { limit: MOST } }, live);
  const narrowed = {
    limit: MOST,
    ...(jobs.length === 0 ? {} : { job: jobs }),
    ...(reasons.length === 0 ? {} : { reason: reasons }),
    ...(came === null ? {} : { since: came }),
    ...(text === null ? {} : { q: text }),
  };
  const groups = useApi("/errors", { query: narrowed }, live);
  const filter: ExecutionFilter = {
    dead: true,
    ...(jobs.length === 0 ? {} : { job: jobs }),
    ...(reasons.length === 0 ? {} : { reason: reasons }),
    ...(text === null || view === "job" ? {} : { error: text }),
  };
  const shown = useStableOrder(groups.data?.items ?? [], keyOf, JSON.stringify(narrowed));
  return (
    <Page title="Dead letters" verdict={all.data && verdictOf(all.data)}>
      {all.data !== undefined && <Verdict text={verdictOf(all.data)} support={<Support groups={all.data} />} />}
      <Underway />
      {all.data?.groupCount === 0 ? (
        <Panel isFlush>
          <NoLetters />
        </Panel>
      ) : (
        <>
          <Filters view={view} />
          <Panel isFlush>
            {view === "job" && <ByJob filter={filter} />}
            {view === "list" && <AsList filter={filter} />}
            {view === "error" && (
              <Loaded what="Dead letters" query={groups} rows={6}>
                {() =>
                  shown.length === 0 ? (
                    <Empty
                      title="No error matches"
                      actions={
                        <Button onClick={() => url.set({ job: null, reason: null, came: null, q: null })}>
                          Drop all filters
                        </Button>
                      }
                    />
                  ) : (
                    <GroupTable groups={shown} jobs={jobs} />
                  )
                }
              </Loaded>
            )}
          </Panel>
        </>
      )}
    </Page>
  );
}

function NoLetters() {
  return (
    <Empty
      title="Nothing has failed for good"
      icon={<Icon name="tick" size={20} className="c-success" />}
      actions={<ButtonLink href="/executions">All executions</ButtonLink>}
    >
      <span>An execution that fails for good comes here, until it is replayed or discarded.</span>
    </Empty>
  );
}

function verdictOf(groups: Groups): string {
  if (groups.groupCount === 0) return "No dead letters";
  const letters = `${capped(groups.count, groups.isCapped)} dead ${groups.count === 1 ? "letter" : "letters"}`;
  return `${letters}, ${count(groups.groupCount)} ${groups.groupCount === 1 ? "error" : "errors"}`;
}

function Support({ groups }: { groups: Groups }) {
  const newest = groups.items.find((group) => group.isNew);
  if (groups.groupCount === 0) return <>Every execution succeeded, was cancelled, or still has attempts left.</>;
  return (
    <>
      {newest !== undefined && (
        <>
          {count(newest.count)} came since <Time at={newest.firstAt} />, {newest.count === 1 ? "" : "all "}with one
          error.{" "}
        </>
      )}
      Dead letters are kept until they are replayed or discarded.
    </>
  );
}
