import { Link } from "wouter";
import { Icon } from "../../components/Icon";
import { Panel } from "../../components/Panel";
import { Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";

// A state of its own, and the wanted one: since when no execution has failed.
export function NothingNeeded() {
  const failed = useApi(
    "/executions",
    { query: { status: ["failed"], limit: 1, fields: "executionId,completedAt" } },
    { live: ["pulse"], everyMs: 10_000 },
  );
  const last = failed.data?.items[0];
  return (
    <Panel>
      <div className="row">
        <Icon name="tick" size={16} className="c-success" />
        {failed.data !== undefined && (
          <span>
            {last === undefined ? (
              "No execution that is kept has failed for good."
            ) : (
              <>
                No execution has failed for good since{" "}
                <Link href={`/executions/${last.executionId}`} className="ln">
                  <Time at={last.completedAt} />
                </Link>
                .
              </>
            )}
          </span>
        )}
      </div>
    </Panel>
  );
}
