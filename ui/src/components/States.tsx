import { type ReactNode, useEffect, useState } from "react";
import type { Problem } from "../api/problem";
import { Button } from "./Button";
import { CopyButton } from "./CopyButton";
import { Callout } from "./Panel";
import css from "./States.module.css";

interface EmptyProps {
  title: string;
  // Why it is empty, and the next step.
  children?: ReactNode;
  icon?: ReactNode;
  actions?: ReactNode;
}

export function Empty({ title, children, icon, actions }: EmptyProps) {
  return (
    <div className={css.empty}>
      {icon}
      <b>{title}</b>
      {children}
      {actions !== undefined && <div className="row wrap">{actions}</div>}
    </div>
  );
}

const PATIENCE_MS = 200;
const WIDTHS = ["62%", "84%", "46%", "70%", "55%", "78%"];

// Grey bars, after a moment only: what arrives at once does not flicker.
export function Loading({ rows = 4 }: { rows?: number }) {
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className={css.loading} role="status" aria-label="Loading">
      {isShown && WIDTHS.slice(0, rows).map((width) => <span key={width} style={{ width }} />)}
    </div>
  );
}

interface FailedProps {
  // What could not be loaded: "Executions".
  what: string;
  problem: Problem;
  onRetry: () => void;
}

export function Failed({ what, problem, onRetry }: FailedProps) {
  const details = JSON.stringify({ what, code: problem.code, detail: problem.message, request: problem.requestId });
  return (
    <Callout colour="failed">
      <b>{what} could not be loaded</b>
      <p className="d2">
        {sentence(problem.message)} ({problem.code}) Workers do not need this page: work continues.
      </p>
      <div className={`row wrap ${css.actions}`}>
        <Button kind="primary" onClick={onRetry}>
          Try again
        </Button>
        <CopyButton text={details} label="Copy the details of the error" word="Copy details" />
        {problem.requestId !== null && <span className="sm d3">request {problem.requestId.slice(-8)}</span>}
      </div>
    </Callout>
  );
}

interface LoadedProps<T> {
  what: string;
  query: {
    data: T | undefined;
    error: Problem | null;
    isPlaceholderData: boolean;
    refetch: () => unknown;
  };
  rows?: number;
  children: (data: T) => ReactNode;
}

// The three states of something that is fetched. Old data stays on screen, and is dimmed while other data loads for long.
export function Loaded<T>({ what, query, rows, children }: LoadedProps<T>) {
  if (query.data === undefined) {
    if (query.error === null) return <Loading rows={rows} />;
    return <Failed what={what} problem={query.error} onRetry={() => void query.refetch()} />;
  }
  return <div className={query.isPlaceholderData ? css.old : undefined}>{children(query.data)}</div>;
}

function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}
