import type { ReactNode } from "react";
import { useVerdict } from "../../app/useVerdict";
import { Verdict } from "../../components/Verdict";

export interface SectionProps {
  // The links to the other sections.
  tabs: ReactNode;
}

interface Props extends SectionProps {
  verdict: string | undefined;
  support?: ReactNode;
  children: ReactNode;
}

// A section of the settings below its verdict. While its data loads, the head keeps its height.
export function Section({ tabs, verdict, support, children }: Props) {
  useVerdict(verdict);
  return (
    <div className="stack">
      <Verdict text={verdict ?? "Settings"} support={support ?? "\u00a0"} />
      {tabs}
      {children}
    </div>
  );
}
