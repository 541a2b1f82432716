import { useLocation } from "wouter";
import { Button } from "../../components/Button";
import { useApi } from "../../hooks/useApi";
import { useKeys } from "../../hooks/useKeys";
import { useUrlState } from "../../hooks/useUrlState";
import { capped } from "../../lib/format";
import { markOf } from "../../lib/states";
import { addressOf, filterOf, withTimes } from "../executions/filter";

// Previous and next in the list from which the execution was opened.
export function Neighbours({ id }: { id: string }) {
  const url = useUrlState();
  const [, go] = useLocation();
  const list = url.one("list");
  const parameters = new URLSearchParams(list ?? "");
  const read = { one: (name: string) => parameters.get(name), all: (name: string) => parameters.getAll(name) };
  const range = { since: parameters.get("since") ?? "1h", until: parameters.get("until") };
  const filter = withTimes(filterOf(read), range);
  const isKnown = list !== null;
  const found = useApi(
    "/executions/{execution}/neighbours",
    { path: { execution: id }, query: filter },
    { enabled: isKnown },
  );
  const total = useApi("/counts", { query: { ...filter, of: "executions" } }, { enabled: isKnown });
  const to = (other: string | null | undefined) => () => {
    if (other) go(addressOf(other, list ?? ""));
  };
  const { previousId, nextId } = (isKnown && !found.isPlaceholderData && found.data) || {
    previousId: null,
    nextId: null,
  };
  useKeys({
    ...(previousId === null ? {} : { "[": { does: "previous in the list", run: to(previousId) } }),
    ...(nextId === null ? {} : { "]": { does: "next in the list", run: to(nextId) } }),
  });
  if (!isKnown) return null;
  const status = filter.status?.length === 1 ? markOf(filter.status[0] ?? "").word.toLowerCase() : "executions";
  return (
    <span className="row not-phone" style={{ gap: 4 }}>
      {total.data !== undefined && (
        <span className="sm d3 nw">
          one of {capped(total.data.count, total.data.isCapped)} {status}
        </span>
      )}
      <Button
        isSmall
        icon="left"
        aria-label="Previous in the list"
        title="["
        disabled={previousId === null}
        onClick={to(previousId)}
      />
      <Button
        isSmall
        icon="right"
        aria-label="Next in the list"
        title="]"
        disabled={nextId === null}
        onClick={to(nextId)}
      />
    </span>
  );
}
