import { signal } from "../lib/signal";

// Words for screen readers: verdicts only, and at most one every ten seconds.
const EVERY_MS = 10_000;
let last = 0;
let later: ReturnType<typeof setTimeout> | undefined;

export const announced = signal("");

export function announce(text: string): void {
  clearTimeout(later);
  const waitMs = Math.max(0, last + EVERY_MS - Date.now());
  later = setTimeout(() => {
    last = Date.now();
    announced.set(text);
  }, waitMs);
}
