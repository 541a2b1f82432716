// What a producer in another language does, with types that come from the served OpenAPI document alone.
// tests/api/test_typescript.py makes schema.d.ts, compiles this file and runs it with the address of a server.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };

type Job = components["schemas"]["JobInFull"];
type LineAnswer = components["schemas"]["LineAnswer"];

const client = createClient<paths>({ baseUrl: process.argv[2] ?? "" });

function check(holds: unknown, words: string): asserts holds {
  if (!holds) throw new Error(words);
}

async function job(name: string, dependencies: string[] = []): Promise<Job> {
  const body = { name, command: "python generate_report.py", dependencies, retries: 3, timeout: 3600 };
  const { data, error, response } = await client.POST("/api/v1/jobs", { body });
  check(data && "jobId" in data, `${name}: ${error?.code} ${error?.detail}`);
  check(response.status === 201 && response.headers.get("location"), `a new job has an address`);
  return data;
}

async function threeCalls(): Promise<Job> {
  const missing = await client.POST("/api/v1/jobs", { body: { name: "x", command: "true", dependencies: ["job1"] } });
  check(missing.error?.errors?.[0]?.pointer === "/dependencies/0", "an unknown dependency is named");
  const first = await job("job1");
  const second = await job("job2");
  const report = await job("daily-report", ["job1", "job2"]);
  const path = { job: report.jobId };
  const found = await client.GET("/api/v1/jobs/{job}", { params: { path } });
  check(found.data?.jobId === report.jobId, "the job is there");
  check(found.data.dependencies?.length === 2 && first.jobId !== second.jobId, "it depends on both");
  const triggered = await client.POST("/api/v1/jobs/{job}/trigger", { params: { path } });
  check(triggered.response.status === 201, "a trigger creates an execution");
  check(triggered.data && "executionId" in triggered.data, "it has an id");
  return report;
}

async function upload(name: string, count: number): Promise<void> {
  const encoder = new TextEncoder();
  const lines = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let n = 0; n < count; n += 1) {
        controller.enqueue(encoder.encode(JSON.stringify({ job: name, tags: [`n${n}`] }) + "\n"));
      }
      controller.close();
    },
  });
  const { data, response } = await client.POST("/api/v1/executions", {
    body: "",
    bodySerializer: () => lines,
    headers: { "Content-Type": "application/x-ndjson", "Idempotency-Key": "upload-1" },
    parseAs: "text",
    duplex: "half",
  });
  check(response.headers.get("content-type") === "application/x-ndjson", "lines are answered with lines");
  const answers = String(data).trim().split("\n").map((line) => JSON.parse(line) as LineAnswer);
  check(answers.at(-1)?.done?.accepted === count, `all lines are accepted: ${data}`);
}

async function list(name: string, expected: number): Promise<void> {
  const seen = new Set<string>();
  let cursor: string | undefined;
  let pages = 0;
  do {
    const query = { job: [name], limit: 10, ...(cursor === undefined ? {} : { cursor }) };
    const { data, error } = await client.GET("/api/v1/executions", { params: { query } });
    check(data, `${error?.code} ${error?.detail}`);
    for (const one of data.items) {
      check(one.executionId && !seen.has(one.executionId) && one.job === name, "each execution comes once");
      seen.add(one.executionId);
    }
    cursor = data.nextCursor ?? undefined;
    pages += 1;
  } while (cursor !== undefined);
  check(seen.size === expected && pages > 2, `${seen.size} executions on ${pages} pages`);
}

async function follow(report: Job): Promise<void> {
  const leaving = new AbortController();
  const { data, response } = await client.GET("/api/v1/stream", {
    params: { query: { topics: "changes" } },
    parseAs: "stream",
    signal: leaving.signal,
  });
  check(data && response.headers.get("content-type") === "text/event-stream", "a stream of events");
  let text = "";
  let isPaused = false;
  for await (const piece of data.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (text.includes("event: hello") && !isPaused) {
      isPaused = true;
      const path = { job: report.jobId };
      const paused = await client.POST("/api/v1/jobs/{job}/pause", { params: { path }, body: { note: "by hand" } });
      check(paused.data && "changed" in paused.data && paused.data.changed, "the job is paused");
    }
    if (/event: change\nid: .*\ndata: .*"action":"pause".*\n\n/.test(text)) break;
  }
  leaving.abort();
}

const report = await threeCalls();
await upload("job1", 25);
await list("job1", 25);
await follow(report);
console.log("all calls succeeded");
