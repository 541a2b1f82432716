import { useQuery } from "@tanstack/react-query";
import { get, namespace } from "./client";
import { Problem } from "./problem";
import type { Answer } from "./types";

export type Me = Answer<"/me">;
export type Right = "read" | "enqueue" | "operate" | "define" | "admin";

export const ME = ["me"] as const;

// Who uses the page; undefined until it is known. A problem with status 401 means: sign in.
export function useMe() {
  return useQuery({
    queryKey: ME,
    queryFn: ({ signal }) => askMe(signal),
    staleTime: 60_000,
    retry: (count, error) => !(error instanceof Problem && error.status < 500 && error.status > 0) && count < 2,
  });
}

// A namespace that the token cannot reach any more answers 404: the choice is dropped, and the first one taken.
async function askMe(signal: AbortSignal): Promise<Me> {
  try {
    return await get("/me", {}, signal);
  } catch (error) {
    if (!(error instanceof Problem && error.status === 404 && namespace.get() !== "")) throw error;
    namespace.set("");
    return get("/me", {}, signal);
  }
}

// may("operate"): what the viewer may not do is absent from the page.
export function useMay(): (right: Right) => boolean {
  const { data } = useMe();
  const scopes: readonly string[] = data?.scopes ?? [];
  return (right) => scopes.includes(right);
}
