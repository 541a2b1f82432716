import type { Finding } from "./types";

const ERROR = /^(.*? failed for good with )(.+?)( since version \d+)?(; [\d,]+ other errors?)?$/s;

// The evidence of a finding. The text of an error is set as code, which sets it apart from the words around it.
export function Evidence({ finding }: { finding: Finding }) {
  const found = finding.kind === "failing" || finding.kind === "dead_letters" ? ERROR.exec(finding.evidence) : null;
  if (found === null) return <>{finding.evidence}</>;
  const [, before, error, ...after] = found;
  return (
    <>
      {before}
      <span className="mono">{error}</span>
      {after.join("")}
    </>
  );
}
