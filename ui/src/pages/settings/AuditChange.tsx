// The members that differ, each as "name: before → after".
export function AuditChange({ before, after }: { before: unknown; after: unknown }) {
  const words = changesOf(before, after).join(" · ");
  return (
    <span className="mono sm el" title={words}>
      {words || "—"}
    </span>
  );
}

function changesOf(before: unknown, after: unknown): string[] {
  const old = membersOf(before);
  const now = membersOf(after);
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
