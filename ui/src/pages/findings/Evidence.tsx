import type { Finding } from "./types";

const ERROR = /^(.*? failed for good with )(.+?)(; [\d,]+ other errors?)?$/s;

// The evidence of a finding. The text of an error is set as code, so that it stands out from the words around it.
export function Evidence({ finding }: { finding: Finding }) {
  const found = finding.kind === "failing" || finding.kind === "dead_letters" ? ERROR.exec(finding.evidence) : null;
  if (found === null) return <>{finding.evidence}</>;
  const [, before, error, others] = found;
  return (
    <>
      {before}
      <span className="mono">{error}</span>
      {others}
    </>
  );
}
