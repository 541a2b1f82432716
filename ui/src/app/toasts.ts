import { signal } from "../lib/signal";

export interface Toast {
  id: number;
  kind: "success" | "failed" | "running";
  text: string;
  // A way back, or to what it is about: { label: "Undo: pause again", run: … }.
  action?: { label: string; run: () => void };
  // Between 0 and 1, of work in the background; such a toast stays until it is replaced.
  progress?: number;
}

const STAYS_MS = 8_000;
const MOST = 3;
let last = 0;

export const toasts = signal<readonly Toast[]>([]);

export function showToast(toast: Omit<Toast, "id">): number {
  last += 1;
  const id = last;
  toasts.set([...toasts.get(), { ...toast, id }].slice(-MOST));
  if (toast.progress === undefined) setTimeout(() => dropToast(id), STAYS_MS);
  return id;
}

// Of a toast with progress: the same toast with other words.
export function changeToast(id: number, toast: Omit<Toast, "id">): void {
  toasts.set(toasts.get().map((one) => (one.id === id ? { ...toast, id } : one)));
  if (toast.progress === undefined) setTimeout(() => dropToast(id), STAYS_MS);
}

export function dropToast(id: number): void {
  toasts.set(toasts.get().filter((toast) => toast.id !== id));
}
