// The members that differ, each as "name: before → after".
export function AuditChange({ before, after }: { before: unknown; after: unknown }) {
  const words = changesOf(before, after).join(" · ");
  return (
    <span className="mono sm el" title={words}>
      {words || "—"}
    </span>
  );
}

// Some values are kept as the text of a JSON object.
export function decoded(given: unknown): unknown {
  if (typeof given !== "string" || !/^[{[]/.test(given)) return given;
  try {
    return JSON.parse(given);
  } catch {
    return given;
  }
}

function changesOf(before: unknown, after: unknown): string[] {
  const old = membersOf(decoded(before));
  const now = membersOf(decoded(after));
  const names = [...new Set([...Object.keys(old), ...Object.keys(now)])];
  return names
    .filter((name) => JSON.stringify(old[name]) !== JSON.stringify(now[name]))
    .map((name) => `${name}: ${text(old[name])} → ${text(now[name])}`);
}

function membersOf(value: unknown): Record<string, unknown> {
  if (value === null || value === undefined) return {};
  return typeof value === "object" && !Array.isArray(value) ? (value as Record<string, unknown>) : { value };
}

function text(value: unknown): string {
  if (value === undefined || value === null) return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}
