import { Link } from "wouter";
import type { Item } from "../../api/types";
import { argumentsInLine } from "../../lib/format";

// The members that a table asks for are there.
export type Execution = Required<Item<"/executions">>;

export const FIELDS = "executionId,status,reason,job,app,arguments,startedAt,completedAt,errorMessage,attemptCount";

export function addressOf(execution: Execution): string {
  return `/executions/${execution.executionId}`;
}

export function JobLink({ execution }: { execution: Execution }) {
  return (
    <Link href={addressOf(execution)} className="ln" title={execution.job}>
      {execution.job}
    </Link>
  );
}

export function Arguments({ execution }: { execution: Execution }) {
  const text = argumentsInLine(execution.arguments as Record<string, unknown>);
  return (
    <span className="mono d2" title={text}>
      {text}
    </span>
  );
}
