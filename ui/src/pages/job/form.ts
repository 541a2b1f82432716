// A form of a JSON schema: what is typed for each parameter, and what is sent.

export interface Parameter {
  name: string;
  kind: "text" | "number" | "boolean" | "choice" | "json";
  choices: readonly unknown[];
  isRequired: boolean;
  // "whole number", "text, such as 2026-11-17"
  hint: string;
  usual: unknown;
}

interface Schema {
  type?: string | string[];
  enum?: unknown[];
  format?: string;
  default?: unknown;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
}

export function parametersOf(schema: unknown, usual: Record<string, unknown> | null): Parameter[] {
  const { properties = {}, required = [] } = schema as Schema;
  return Object.entries(properties).map(([name, one]) => ({
    name,
    kind: kindOf(one),
    choices: one.enum ?? [],
    isRequired: required.includes(name) && usual?.[name] === undefined,
    hint: hintOf(one),
    usual: usual?.[name] ?? one.default,
  }));
}

function typeOf(schema: Schema): string | null {
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((type) => type !== "null");
  return types.length === 1 ? (types[0] ?? null) : null;
}

function kindOf(schema: Schema): Parameter["kind"] {
  if (schema.enum !== undefined) return "choice";
  const type = typeOf(schema);
  if (type === "string") return "text";
  if (type === "integer" || type === "number") return "number";
  return type === "boolean" ? "boolean" : "json";
}

const WORDS: Record<string, string> = {
  string: "text",
  integer: "whole number",
  number: "number",
  boolean: "yes or no",
  array: "list, as JSON",
  object: "object, as JSON",
};

function hintOf(schema: Schema): string {
  const type = schema.format ?? WORDS[typeOf(schema) ?? ""] ?? "JSON";
  return schema.description === undefined ? type : `${type}: ${schema.description}`;
}

export function typedOf(parameter: Parameter, value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" && parameter.kind !== "json" ? value : JSON.stringify(value);
}

// What is typed, as values. What is left empty is left out, so the job's own default holds.
export function argumentsOf(parameters: readonly Parameter[], typed: Record<string, string>): Record<string, unknown> {
  const given = parameters.flatMap((parameter) => {
    const text = typed[parameter.name] ?? "";
    return text === "" ? [] : [[parameter.name, parsedOf(parameter, text)] as const];
  });
  return Object.fromEntries(given);
}

// Text that is no JSON is sent as text: the server says what it expects instead.
function parsedOf(parameter: Parameter, text: string): unknown {
  if (parameter.kind === "text") return text;
  if (parameter.kind === "choice") return parameter.choices.find((one) => typedOf(parameter, one) === text) ?? text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
