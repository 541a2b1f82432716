import { useSyncExternalStore } from "react";

function useMedia(query: string): boolean {
  const list = window.matchMedia(query);
  return useSyncExternalStore(
    (listener) => {
      list.addEventListener("change", listener);
      return () => list.removeEventListener("change", listener);
    },
    () => list.matches,
  );
}

export function useIsPhone(): boolean {
  return useMedia("(max-width: 699px)");
}

// Wider than a tablet, but without room for every column.
export function useIsTight(): boolean {
  return useMedia("(max-width: 1299px)");
}

export function useIsNarrow(): boolean {
  return useMedia("(max-width: 1099px)");
}
