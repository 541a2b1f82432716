import { useEffect } from "react";
import { announce } from "./announce";

// The sentence at the head of a page is the title of the browser's tab, and is read out when it changes.
export function useVerdict(verdict: string | undefined): void {
  useEffect(() => {
    if (verdict === undefined) return;
    document.title = `${verdict} · Rota`;
    announce(verdict);
  }, [verdict]);
}
