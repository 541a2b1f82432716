import { Link } from "wouter";
import { StateIcon } from "../../components/StateIcon";
import { useApi } from "../../hooks/useApi";
import type { TimeRange } from "../../hooks/useTimeRange";
import { useUrlState } from "../../hooks/useUrlState";
import { shortCount } from "../../lib/format";
import { hasEnded, markOf, STATUSES, type Status } from "../../lib/states";
import css from "./Facets.module.css";
import { type ExecutionFilter, withTimes } from "./filter";

const ORDER: readonly Status[] = [
  "queued",
  "waiting",
  "scheduled",
  "running",
  "retrying",
  "success",
  "failed",
  "cancelled",
  "skipped",
];
const OPEN = STATUSES.filter((status) => !hasEnded(status));
const LIVE = { live: ["pulse"], everyMs: 5000 } as const;

interface Props {
  filter: ExecutionFilter;
  range: TimeRange;
}

// How many there are in each state, and the way to see only those. Of ended ones the range counts; of others, all.
export function Facets({ filter, range }: Props) {
  const url = useUrlState();
  const { status: chosen = [], ...others } = filter;
  const ended = useApi("/counts", { query: { ...withTimes(others, range), of: "executions", by: "status" } }, LIVE);
  const open = useApi("/counts", { query: { ...others, status: OPEN, of: "executions", by: "status" } }, LIVE);
  const numberOf = (status: Status) => {
    const { data } = hasEnded(status) ? ended : open;
    if (data === undefined) return null;
    const group = data.groups.find(({ value }) => value === status);
    return { value: group?.count ?? 0, isCapped: group?.isCapped ?? false };
  };
  const all = ended.data === undefined ? null : { value: ended.data.count, isCapped: ended.data.isCapped };
  return (
    <nav className={css.facets} aria-label="States">
      <Facet label="All" number={all} isOn={chosen.length === 0} href={url.href({ status: null, cursor: null })} />
      {ORDER.map((status) => (
        <Facet
          key={status}
          status={status}
          label={markOf(status).word}
          number={numberOf(status)}
          isOn={chosen.includes(status)}
          href={url.href({ status, cursor: null })}
        />
      ))}
    </nav>
  );
}

interface FacetProps {
  status?: Status;
  label: string;
  number: { value: number; isCapped: boolean } | null;
  isOn: boolean;
  href: string;
}

function Facet({ status, label, number, isOn, href }: FacetProps) {
  return (
    <Link href={href} className={`${css.facet} ${isOn ? css.on : ""}`} aria-current={isOn ? "true" : undefined}>
      {status !== undefined && <StateIcon status={status} />}
      {label}
      {number !== null && (
        <span className="tab d3">
          {shortCount(number.value)}
          {number.isCapped ? "+" : ""}
        </span>
      )}
    </Link>
  );
}
