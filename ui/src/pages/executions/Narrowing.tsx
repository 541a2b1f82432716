import { FilterTokens } from "../../components/FilterTokens";
import { Icon } from "../../components/Icon";
import { useApi } from "../../hooks/useApi";
import { rangeWords, type TimeRange } from "../../hooks/useTimeRange";
import { useUrlState } from "../../hooks/useUrlState";
import { useZone } from "../../hooks/useZone";
import { shortTime } from "../../lib/zone";
import { type ExecutionFilter, isTimed, MANY } from "./filter";
import css from "./Narrowing.module.css";

const NAMES = [...MANY, "error", "dead"] as const;

// The filters in force, and a way to add one.
export function Narrowing({ filter, range }: { filter: ExecutionFilter; range: TimeRange }) {
  const url = useUrlState();
  const queues = useApi("/queues", { query: { limit: 200 } });
  const jobs = useApi("/jobs", { query: { limit: 500, fields: "name,app" } });
  const options: Record<string, readonly string[]> = {
    queue: (queues.data?.items ?? []).map((queue) => queue.name ?? ""),
    job: [...new Set((jobs.data?.items ?? []).map((job) => job.name ?? ""))],
    app: [...new Set((jobs.data?.items ?? []).map((job) => job.app ?? ""))],
    dead: ["true", "false"],
  };
  const filters = NAMES.map((name) => ({ name, options: options[name]?.length ? options[name] : undefined }));
  const values = Object.fromEntries(NAMES.map((name) => [name, url.all(name)]));
  return (
    <div className="gr">
      <FilterTokens
        before={isTimed(filter, range.since) ? <Created range={range} /> : null}
        filters={filters}
        values={values}
        onChange={(name, next) =>
          url.set({ [name]: name === "error" || name === "dead" ? next.slice(-1) : next, cursor: null })
        }
      />
    </div>
  );
}

function Created({ range }: { range: TimeRange }) {
  const url = useUrlState();
  return (
    <span className={css.created}>
      <span className="d3">created</span> <CreatedWords range={range} />
      <button
        type="button"
        aria-label="Show those of any time"
        onClick={() => url.set({ since: "all", until: null, cursor: null })}
      >
        <Icon name="cross" />
      </button>
    </span>
  );
}

function CreatedWords({ range: { since, until } }: { range: TimeRange }) {
  const { zone } = useZone();
  if (until === null && /^\d+[smhd]$/.test(since)) return <>{rangeWords(since)}</>;
  const now = new Date();
  const to = until === null ? "" : ` to ${shortTime(new Date(until), zone, now)}`;
  return (
    <>
      {until === null ? "since " : ""}
      {shortTime(new Date(since), zone, now)}
      {to}
    </>
  );
}
