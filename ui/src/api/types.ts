import type { paths } from "./schema";

// The routes as pages name them: /workers instead of /api/v1/workers.

export const BASE = "/api/v1";

type Short<P, M extends string> = P extends `/api/v1${infer S}`
  ? P extends keyof paths
    ? paths[P] extends { [K in M]: { responses: unknown } }
      ? S
      : never
    : never
  : never;

export type Method = "get" | "post" | "put" | "patch" | "delete";
export type PathOf<M extends Method> = Short<keyof paths, M>;
export type Operation<S extends string, M extends Method> = `/api/v1${S}` extends keyof paths
  ? paths[`/api/v1${S}`] extends { [K in M]: infer O }
    ? O
    : never
  : never;

type Content<R> = R extends { content: { "application/json": infer T } } ? T : never;
type Success<R> = { [K in keyof R]: K extends 200 | 201 | 202 ? Content<R[K]> : never }[keyof R];
export type AnswerOf<O> = O extends { responses: infer R } ? Success<R> : never;
export type QueryOf<O> = O extends { parameters: { query?: infer Q } } ? NonNullable<Q> : Record<string, never>;
export type PathParameters<O> = O extends { parameters: { path: infer P } } ? P : undefined;
export type BodyOf<O> = O extends { requestBody?: { content: infer C } }
  ? C extends { "application/json": infer B }
    ? B
    : undefined
  : undefined;

export interface Asked<O> {
  path?: PathParameters<O>;
  query?: QueryOf<O>;
}

// Answer<"/workers"> is the body of GET /api/v1/workers.
export type Answer<S extends PathOf<"get">> = AnswerOf<Operation<S, "get">>;
// Item<"/workers"> is one item of a list.
export type Item<S extends PathOf<"get">> = Answer<S> extends { items: (infer T)[] } ? T : never;
