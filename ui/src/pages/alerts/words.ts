import { count } from "../../lib/format";
import type { Finding } from "../findings/types";

export function verdictOf(findings: readonly Finding[]): string {
  if (findings.length === 0) return "Nothing needs attention";
  return findings.length === 1 ? "1 thing needs attention" : `${count(findings.length)} things need attention`;
}

export function supportOf(findings: readonly Finding[]): string {
  const critical = findings.filter((finding) => finding.severity === "critical").length;
  if (findings.length === 0) return "Checked a moment ago: jobs, queues, schedules, workers, runs and approvals.";
  return `${count(critical)} critical, ${count(findings.length - critical)} ${findings.length - critical === 1 ? "warning" : "warnings"}, worst first. The command rota doctor has the same findings.`;
}
