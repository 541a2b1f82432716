import { Suspense } from "react";
import { Redirect, Route, Switch, useLocation, useSearch } from "wouter";
import { problemOf } from "../api/problem";
import { useMe } from "../api/session";
import { Failed } from "../components/States";
import { ErrorBoundary } from "./ErrorBoundary";
import { NotFound } from "./NotFound";
import { Page } from "./Page";
import { ROUTES } from "./routes";
import { Shell } from "./Shell";

export function Pages() {
  const [path] = useLocation();
  const search = useSearch();
  const me = useMe();
  if (path === "/sign-in") return <Routed />;
  if (me.data === undefined) {
    if (me.error === null) return null;
    const problem = problemOf(me.error);
    if (problem.status === 401) {
      const then = path + (search === "" ? "" : `?${search}`);
      return <Redirect to={`/sign-in?then=${encodeURIComponent(then)}`} replace />;
    }
    return (
      <div style={{ padding: 20 }}>
        <Failed what="The dashboard" problem={problem} onRetry={() => void me.refetch()} />
      </div>
    );
  }
  return (
    <Shell>
      <ErrorBoundary at={path}>
        <Routed />
      </ErrorBoundary>
    </Shell>
  );
}

function Routed() {
  return (
    <Suspense fallback={<Page title="" isLoading />}>
      <Switch>
        {ROUTES.map(({ pattern, component: Shown }) => (
          <Route key={pattern} path={pattern}>
            {(params) => (Shown === null ? <NotFound /> : <Shown params={params as Record<string, string>} />)}
          </Route>
        ))}
        <Route>
          <NotFound />
        </Route>
      </Switch>
    </Suspense>
  );
}
