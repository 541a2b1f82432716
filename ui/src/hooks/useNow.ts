import { skew } from "../api/live";
import { signal, useSignal } from "../lib/signal";

// The time of the server in milliseconds, which moves once a second and stands still while the tab is hidden.
const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.set(Date.now() + skew.get());
}, 1000);

export function useNow(): number {
  return useSignal(now);
}

export function serverNow(): number {
  return Date.now() + skew.get();
}
