import { Page } from "../app/Page";
import { ButtonLink } from "../components/Button";
import { CopyCommand } from "../components/CopyCommand";
import { NewPill } from "../components/NewPill";
import { Pager } from "../components/Pager";
import { Panel } from "../components/Panel";
import { Empty, Loaded } from "../components/States";
import { Verdict } from "../components/Verdict";
import { useApi } from "../hooks/useApi";
import { useUrlState } from "../hooks/useUrlState";
import { capped, count, plural } from "../lib/format";
import type { Status } from "../lib/states";
import { RunFilters } from "./runs/RunFilters";
import { RunTable } from "./runs/RunTable";
import { useSteady } from "./runs/useSteady";

const PAGE = 50;
const LIVE = { live: ["pulse"], everyMs: 2000 } as const;

export default function Runs() {
  const url = useUrlState();
  const cursor = url.one("cursor");
  const filter = given({ workflow: url.one("workflow"), app: url.one("app"), status: url.one("status") });
  const query = { ...filter, limit: PAGE, ...given({ cursor }) };
  const list = useApi("/runs", { query }, LIVE);
  const total = (status: Status) =>
    // biome-ignore lint/correctness/useHookAtTopLevel: called for the same states in the same order each time.
    useApi("/counts", { query: { of: "runs", status: [status] } }, { ...LIVE, everyMs: 5000 }).data;
  const [running, failed] = [total("running"), total("failed")];
  const { rows, fresh, show } = useSteady(JSON.stringify(query), list.isPlaceholderData ? undefined : list.data?.items);
  const verdict = running && failed && verdictOf(running, failed);
  const isNarrowed = Object.keys(filter).length > 0;
  const turn = (to: string | null | undefined) => (to ? () => url.set({ cursor: to }) : undefined);
  return (
    <Page title="Runs" verdict={verdict}>
      <div className="stack">
        {verdict && (
          <Verdict text={verdict} support={supportOf(rows.filter((run) => run.questions.length > 0).length)} />
        )}
        {(list.data === undefined || rows.length > 0 || isNarrowed) && <RunFilters />}
        <Panel isFlush>
          <Loaded what="Runs" query={list} rows={6}>
            {(data) => (
              <>
                {rows.length === 0 ? (
                  <Nothing isNarrowed={isNarrowed} />
                ) : (
                  <RunTable
                    rows={rows}
                    before={fresh > 0 && cursor === null ? <NewPill number={fresh} onShow={show} /> : undefined}
                  />
                )}
                {(data.previousCursor !== null || data.nextCursor !== null) && (
                  <Pager newer={turn(data.previousCursor)} older={turn(data.nextCursor)}>
                    {count(rows.length)} shown
                  </Pager>
                )}
              </>
            )}
          </Loaded>
        </Panel>
      </div>
    </Page>
  );
}

function Nothing({ isNarrowed }: { isNarrowed: boolean }) {
  if (isNarrowed) return <Empty title="No run matches" actions={<ButtonLink href="/runs">Show all runs</ButtonLink>} />;
  return (
    <Empty title="No run yet">
      <span>A run is one start of a workflow: a graph of steps. Declare one with @app.workflow, and start it:</span>
      <CopyCommand command="rota start WORKFLOW" />
    </Empty>
  );
}

interface Counted {
  count: number;
  isCapped: boolean;
}

function verdictOf(running: Counted, failed: Counted): string {
  const open =
    running.count === 0
      ? "No run is open"
      : `${capped(running.count, running.isCapped)} open ${running.count === 1 ? "run" : "runs"}`;
  return failed.count === 0 ? open : `${open}, ${capped(failed.count, failed.isCapped)} failed`;
}

function supportOf(questions: number): string | undefined {
  return questions === 0 ? undefined : `${plural(questions, "run waits", "runs wait")} for an answer`;
}

// Only the parameters that have a value.
function given(values: Record<string, string | null>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== null));
}
