import { Icon } from "../../components/Icon";
import type { Finding } from "./types";

export function SeverityIcon({ severity }: { severity: Finding["severity"] }) {
  const isCritical = severity === "critical";
  return (
    <>
      <Icon name={isCritical ? "octagon-cross" : "triangle"} size={16} className={isCritical ? "c-failed" : "c-warn"} />
      <span className="unseen">{isCritical ? "Critical: " : "Warning: "}</span>
    </>
  );
}
