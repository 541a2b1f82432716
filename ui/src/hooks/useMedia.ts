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

// Tables have room for their most important columns only.
export function useIsTight(): boolean {
  return useMedia("(max-width: 1279px)");
}

export function useIsNarrow(): boolean {
  return useMedia("(max-width: 1099px)");
}
