import { plural } from "../../lib/format";
import { hasEnded, markOf } from "../../lib/states";

interface Outcome {
  executionId: string;
  status: string;
}

const STEP = 7;
const TALL = 14;
const PLACES = 20;

// The last outcomes as marks, the newest at the right. Shape and colour differ: a failed one is an octagon.
export function Outcomes({ of, places = PLACES }: { of: readonly Outcome[]; places?: number }) {
  const shown = of.slice(0, places);
  return (
    <svg
      width={places * STEP}
      height={TALL}
      style={{ verticalAlign: "middle" }}
      role="img"
      aria-label={sentenceOf(shown)}
    >
      {shown.map((one, index) => (
        <Mark key={one.executionId} status={one.status} x={(places - 1 - index) * STEP} />
      ))}
    </svg>
  );
}

function Mark({ status, x }: { status: string; x: number }) {
  const fill = `var(--${markOf(status).colour})`;
  if (status === "failed") return <path d={`M${x + 2} 3.5h3l2 2v3l-2 2h-3l-2-2v-3z`} fill={fill} />;
  if (status === "success") return <rect x={x + 1.5} y={2} width={4} height={10} rx={1} fill={fill} opacity={0.75} />;
  if (status === "running") return <rect x={x + 1.5} y={2} width={4} height={10} rx={1} fill={fill} />;
  if (hasEnded(status)) return <rect x={x + 3} y={2} width={1.5} height={10} fill={fill} />;
  return <rect x={x + 2} y={2.5} width={3} height={9} rx={1} fill="none" stroke={fill} />;
}

function sentenceOf(shown: readonly Outcome[]): string {
  if (shown.length === 0) return "no runs yet";
  const failed = shown.filter((one) => one.status === "failed").length;
  return `last ${plural(shown.length, "run")}: ${failed === 0 ? "none failed" : `${failed} failed`}`;
}
