// The one stream of live changes of a tab. It collects what arrives for up to 250 ms, hands it on at once, ends while the
// tab is hidden, and reconnects after a loss. While the reader holds the page, events are counted and not handed on.
import { signal } from "../lib/signal";
import { namespace } from "./client";
import { eventsOf, type ServerEvent } from "./sse";
import { BASE } from "./types";

const TOGETHER_MS = 250;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 15_000;
// The server sends an event at least every 15 s.
const SILENCE_MS = 40_000;

export type Connection =
  | { kind: "off" }
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "lost"; since: number; retryAt: number };

export interface Batch {
  events: ServerEvent[];
  // Whether events may have been missed, so that everything shown has to be fetched again.
  isGap: boolean;
}

export const connection = signal<Connection>({ kind: "off" });
export const held = signal(false);
export const missed = signal(0);
export const skew = signal(0);

const listeners = new Set<(batch: Batch) => void>();
const watched = new Map<string, number>();
let waiting: Batch = { events: [], isGap: false };
let flushing: ReturnType<typeof setTimeout> | undefined;
let lastId: string | null = null;
let abort: AbortController | null = null;
let retryMs = FIRST_RETRY_MS;
let retry: ReturnType<typeof setTimeout> | undefined;
let restart: ReturnType<typeof setTimeout> | undefined;
let isWanted = false;

export function listen(listener: (batch: Batch) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

// Asks for the events of one execution or run, such as executions:ID.
export function watch(topic: string): () => void {
  watched.set(topic, (watched.get(topic) ?? 0) + 1);
  reconnectSoon();
  return () => {
    const left = (watched.get(topic) ?? 1) - 1;
    if (left > 0) watched.set(topic, left);
    else watched.delete(topic);
  };
}

export function start(): () => void {
  isWanted = true;
  const onVisibility = () => (document.hidden ? close({ kind: "off" }) : open(true));
  document.addEventListener("visibilitychange", onVisibility);
  const unfollow = namespace.subscribe(() => {
    lastId = null;
    if (isWanted && !document.hidden) open(true);
  });
  if (!document.hidden) open(false);
  return () => {
    isWanted = false;
    unfollow();
    document.removeEventListener("visibilitychange", onVisibility);
    close({ kind: "off" });
  };
}

export function tryNow(): void {
  if (isWanted) open(true);
}

export function toggleHold(): void {
  held.set(!held.get());
  if (held.get()) return;
  missed.set(0);
  waiting.isGap = true;
  flush();
}

function reconnectSoon(): void {
  if (!isWanted || document.hidden) return;
  clearTimeout(restart);
  restart = setTimeout(() => open(false), 50);
}

function open(isGap: boolean): void {
  if (abort !== null) abort.abort();
  clearTimeout(retry);
  clearTimeout(restart);
  if (isGap) add({ events: [], isGap });
  abort = new AbortController();
  if (connection.get().kind !== "lost") connection.set({ kind: "connecting" });
  void follow(abort);
}

function close(as: Connection): void {
  abort?.abort();
  abort = null;
  clearTimeout(retry);
  clearTimeout(restart);
  connection.set(as);
}

async function follow(own: AbortController): Promise<void> {
  let silence: ReturnType<typeof setTimeout> | undefined;
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(() => own.abort(new Error("silence")), SILENCE_MS);
  };
  try {
    heard();
    const response = await fetch(address(), { headers: headers(), signal: own.signal, cache: "no-store" });
    if (!response.ok) throw new Error(`the stream answered ${response.status}`);
    for await (const event of eventsOf(response)) {
      heard();
      take(event);
    }
  } catch {
    // Any end is treated alike below.
  } finally {
    clearTimeout(silence);
  }
  if (abort === own && isWanted) lose();
}

function address(): string {
  const query = new URLSearchParams({ topics: "pulse,changes" });
  for (const topic of watched.keys()) query.append("watch", topic);
  return `${BASE}/stream?${query}`;
}

function headers(): Record<string, string> {
  const given: Record<string, string> = { Accept: "text/event-stream" };
  if (namespace.get() !== "") given["Rota-Namespace"] = namespace.get();
  if (lastId !== null) given["Last-Event-ID"] = lastId;
  return given;
}

function take(event: ServerEvent): void {
  if (event.id !== null) lastId = event.id;
  if (event.name === "hello") {
    const wasLost = connection.get().kind === "lost";
    retryMs = FIRST_RETRY_MS;
    skew.set(Date.parse((event.data as { now: string }).now) - Date.now());
    connection.set({ kind: "live" });
    if (wasLost) add({ events: [], isGap: true });
  } else if (event.name === "reset") {
    add({ events: [], isGap: true });
  } else if (event.name !== "ping") {
    add({ events: [event], isGap: false });
  }
}

function lose(): void {
  const before = connection.get();
  const since = before.kind === "lost" ? before.since : Date.now();
  connection.set({ kind: "lost", since, retryAt: Date.now() + retryMs });
  clearTimeout(retry);
  retry = setTimeout(() => open(false), retryMs);
  retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
}

function add(batch: Batch): void {
  waiting.events.push(...batch.events);
  waiting.isGap ||= batch.isGap;
  flushing ??= setTimeout(flush, TOGETHER_MS);
}

function flush(): void {
  clearTimeout(flushing);
  flushing = undefined;
  if (held.get()) {
    missed.set(missed.get() + waiting.events.length);
    waiting = { events: [], isGap: true };
    return;
  }
  const batch = waiting;
  waiting = { events: [], isGap: false };
  for (const listener of [...listeners]) listener(batch);
}
