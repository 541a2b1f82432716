import { Link } from "wouter";
import { useNow } from "../../hooks/useNow";
import type { ExecutionItem } from "./filter";
import { reasonOf, shortError } from "./words";

interface Props {
  row: ExecutionItem;
  href: (id: string) => string;
}

// "again in 14 s · APIConnectionError: connection reset by peer". The error leads to its traceback.
export function Reason({ row, href }: Props) {
  const now = useNow();
  const reason = reasonOf(row, now);
  const error = row.status === "success" ? "" : shortError(row.errorMessage);
  const address = href(row.executionId ?? "");
  return (
    <>
      {reason !== "" && (
        <Link href={address} className="d2">
          {reason}
        </Link>
      )}
      {reason !== "" && error !== "" && <span className="d3"> · </span>}
      {error !== "" && (
        <Link href={address} className="mono" title={row.errorMessage ?? undefined}>
          {error}
        </Link>
      )}
    </>
  );
}
