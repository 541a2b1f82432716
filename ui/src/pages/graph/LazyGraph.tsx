import { lazy, Suspense, useState } from "react";
import { Button } from "../../components/Button";
import type { GraphProps } from "./types";

const Graph = lazy(() => import("./Graph"));

// The graph, whose library is fetched when it is first shown, and the button that makes it fit again.
export function useFit(): { button: React.ReactNode; fits: number } {
  const [fits, setFits] = useState(0);
  return {
    fits,
    button: (
      <Button isSmall icon="fit" onClick={() => setFits(fits + 1)}>
        Fit
      </Button>
    ),
  };
}

export function LazyGraph(props: GraphProps & { fits: number }) {
  return (
    <Suspense fallback={<div role="status" aria-label="Loading" style={{ minHeight: props.height }} />}>
      <Graph {...props} />
    </Suspense>
  );
}
