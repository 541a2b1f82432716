import { get, namespace } from "../../../api/client";
import { eventsOf } from "../../../api/sse";
import { BASE } from "../../../api/types";
import type { LogLine } from "./lines";

export const TAIL = 1000;

export function tailOf(id: string, signal: AbortSignal) {
  return get("/executions/{execution}/logs", { path: { execution: id }, query: { tail: TAIL, limit: TAIL } }, signal);
}

function headersFor(accept: string, more: Record<string, string> = {}): Record<string, string> {
  return { Accept: accept, ...(namespace.get() === "" ? {} : { "Rota-Namespace": namespace.get() }), ...more };
}

function addressOf(id: string, query = ""): string {
  return `${BASE}/executions/${id}/logs${query}`;
}

// All lines before one that is known, oldest first.
export async function earlierThan(id: string, known: LogLine, signal: AbortSignal): Promise<LogLine[]> {
  const response = await fetch(addressOf(id), { headers: headersFor("application/x-ndjson"), signal });
  if (!response.ok || response.body === null) throw new Error(`the log answered ${response.status}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const lines: LogLine[] = [];
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return lines;
    const texts = (rest + value).split("\n");
    rest = texts.pop() ?? "";
    for (const text of texts) {
      if (text === "") continue;
      const line = JSON.parse(text) as LogLine;
      if (line.fence === known.fence && line.line === known.line) {
        await reader.cancel();
        return lines;
      }
      lines.push(line);
    }
  }
}

// Lines as they are written, from behind the last one that is known. It returns when the log is over, and throws when
// the connection is lost.
export async function followFrom(
  id: string,
  after: LogLine | undefined,
  signal: AbortSignal,
  take: (line: LogLine) => void,
): Promise<"over" | "lost"> {
  const position = after === undefined ? "0.0" : `${after.fence}.${after.line}`;
  const headers = headersFor("text/event-stream", { "Last-Event-ID": position });
  const response = await fetch(addressOf(id), { headers, signal, cache: "no-store" });
  if (!response.ok) return "lost";
  for await (const event of eventsOf(response)) {
    if (event.name === "line") take(event.data as LogLine);
    if (event.name === "end") return "over";
    if (event.name === "bye") return "lost";
  }
  return "lost";
}

export async function download(id: string): Promise<void> {
  const response = await fetch(addressOf(id), { headers: headersFor("text/plain") });
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = `${id}.log`;
  link.click();
  URL.revokeObjectURL(url);
}
