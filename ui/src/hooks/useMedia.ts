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

export function useIsNarrow(): boolean {
  return useMedia("(max-width: 1099px)");
}
