import createClient from "openapi-fetch";
import { stored } from "../lib/stored";
import { Problem } from "./problem";
import type { paths } from "./schema";
import {
  type Answer,
  type AnswerOf,
  type Asked,
  BASE,
  type BodyOf,
  type Method,
  type Operation,
  type PathOf,
} from "./types";

// The namespace that was chosen; empty: the first of the token.
export const namespace = stored<string>("rota.namespace", "");

const client = createClient<paths>({ baseUrl: "" });

client.use({
  onRequest({ request }) {
    if (namespace.get() !== "") request.headers.set("Rota-Namespace", namespace.get());
    return request;
  },
});

interface Options {
  path?: unknown;
  query?: unknown;
  body?: unknown;
  key?: string;
  signal?: AbortSignal;
}

// The types of the routes are checked by the callers below; here a path is only text.
type Request = (
  method: Method,
  path: string,
  init: unknown,
) => Promise<{ data?: unknown; error?: unknown; response: Response }>;

async function send(
  method: Method,
  path: string,
  { path: inPath, query, body, key, signal }: Options,
): Promise<unknown> {
  const headers = key === undefined ? {} : { "Idempotency-Key": key };
  const request = client.request as unknown as Request;
  const init = { params: { path: inPath, query }, body, headers, signal };
  const { data, error, response } = await request(method, BASE + path, init).catch(reachable);
  if (!response.ok) throw new Problem(response.status, typeof error === "object" && error !== null ? error : {});
  return data;
}

function reachable(error: unknown): never {
  if (error instanceof DOMException && error.name === "AbortError") throw error;
  throw Problem.unreachable();
}

export function get<S extends PathOf<"get">>(
  path: S,
  asked: Asked<Operation<S, "get">> = {},
  signal?: AbortSignal,
): Promise<Answer<S>> {
  return send("get", path, { ...asked, signal }) as Promise<Answer<S>>;
}

export type Change = Exclude<Method, "get">;
export type Sent<S extends string, M extends Change> = Asked<Operation<S, M>> & { body?: BodyOf<Operation<S, M>> };

// One key per intent: a request that is sent again after a lost answer has its effect once.
export function change<M extends Change, S extends PathOf<M>>(
  method: M,
  path: S,
  sent: Sent<S, M> = {},
  key: string = crypto.randomUUID(),
): Promise<AnswerOf<Operation<S, M>>> {
  const options = method === "post" ? { ...sent, key } : sent;
  return send(method, path, options as Options) as Promise<AnswerOf<Operation<S, M>>>;
}

// For a path that the server itself has named, such as the remedy of a check or the action of a finding.
export function changeAt(
  method: string,
  url: string,
  body?: unknown,
  key: string = crypto.randomUUID(),
): Promise<unknown> {
  const known = method.toLowerCase() as Method;
  const path = url.startsWith(BASE) ? url.slice(BASE.length) : url;
  return send(known, path, { body: body ?? undefined, key: known === "post" ? key : undefined });
}
