import { HeadlessMantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useEffect } from "react";
import { Problem } from "../api/problem";
import { refreshOnEvents } from "../api/refreshing";
import { ME } from "../api/session";
import { Sprite } from "../components/sprite";
import { ErrorBoundary } from "./ErrorBoundary";
import { followKeys } from "./keys";
import { Pages } from "./Pages";
import { Toasts } from "./Toasts";

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 500,
      // The stream says when something has changed, and returning to the tab reopens it.
      refetchOnWindowFocus: false,
      retry: (count, error) => error instanceof Problem && error.isPassing && count < 2,
      retryDelay: (count) => Math.min(4000, 500 * 2 ** count),
    },
  },
});

// A session that has ended shows itself in any answer: then the page asks who is there, and shows the sign-in.
client.getQueryCache().subscribe((event) => {
  const error = event.type === "updated" && event.action.type === "error" ? event.action.error : null;
  const isOfMe = event.query.queryKey[0] === ME[0];
  if (error instanceof Problem && error.status === 401 && !isOfMe) void client.resetQueries({ queryKey: ME });
});

export function App() {
  useEffect(() => refreshOnEvents(client), []);
  useEffect(followKeys, []);
  return (
    <QueryClientProvider client={client}>
      <HeadlessMantineProvider>
        <Sprite />
        <ErrorBoundary>
          <Pages />
        </ErrorBoundary>
        <Toasts />
      </HeadlessMantineProvider>
    </QueryClientProvider>
  );
}
