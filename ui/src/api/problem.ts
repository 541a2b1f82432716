// A refusal of the server (RFC 9457), or a request that did not reach it.

export interface Flaw {
  pointer?: string;
  parameter?: string;
  header?: string;
  code?: string;
  detail?: string;
}

interface Body {
  code?: string;
  title?: string;
  detail?: string;
  requestId?: string;
  retryAfter?: number;
  errors?: Flaw[];
  existing?: unknown;
}

export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;
  readonly flaws: Flaw[];
  readonly existing: unknown;
  readonly retryAfter: number | null;

  constructor(status: number, body: Body) {
    super(body.detail ?? body.title ?? `the server answered ${status}`);
    this.name = "Problem";
    this.status = status;
    this.code = body.code ?? `http_${status}`;
    this.requestId = body.requestId ?? null;
    this.flaws = body.errors ?? [];
    this.existing = body.existing;
    this.retryAfter = body.retryAfter ?? null;
  }

  static unreachable(): Problem {
    return new Problem(0, { code: "unreachable", detail: "the server does not answer" });
  }

  // Whether the same request may succeed a little later.
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  // Of the member of a body that a form field is for, such as /arguments/to.
  flawAt(pointer: string): string | undefined {
    return this.flaws.find((flaw) => flaw.pointer === pointer)?.detail;
  }
}

export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof TypeError) return Problem.unreachable();
  return new Problem(0, { code: "page", detail: error instanceof Error ? error.message : String(error) });
}
