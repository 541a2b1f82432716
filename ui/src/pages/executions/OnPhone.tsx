import { Link } from "wouter";
import { StateIcon } from "../../components/StateIcon";
import { Duration, Time } from "../../components/Time";
import { useNow } from "../../hooks/useNow";
import { argumentsInLine } from "../../lib/format";
import { markOf } from "../../lib/states";
import type { ExecutionItem } from "./filter";
import { reasonOf, shortError, tookOf } from "./words";

interface Props {
  row: ExecutionItem;
  href: (id: string) => string;
}

// Two lines: what it is, and why it is so.
export function OnPhone({ row, href }: Props) {
  const now = useNow();
  const reason = reasonOf(row, now);
  const error = row.status === "success" ? "" : shortError(row.errorMessage);
  const second = [reason, error].filter((text) => text !== "").join(" · ");
  return (
    <Link href={href(row.executionId ?? "")} className="col" style={{ gap: 2 }}>
      <span className="row">
        <StateIcon status={row.status ?? ""} />
        <span className="unseen">{markOf(row.status ?? "").word}</span>
        <b className="gr el">{row.job}</b>
        <span className="d2">
          <Duration seconds={tookOf(row, now)} />
        </span>
        <span className="d3">
          <Time at={row.createdAt} />
        </span>
      </span>
      <span className={`sm el d2 ${error === "" ? "" : "mono"}`}>
        {second === "" ? argumentsInLine(row.arguments as Record<string, unknown> | null) : second}
      </span>
    </Link>
  );
}
