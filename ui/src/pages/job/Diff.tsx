import type { Difference } from "../../api/schema";
import css from "./Job.module.css";

// Each member that differs, before and after.
export function Diff({ of }: { of: readonly Difference[] }) {
  return (
    <div className={css.diff}>
      {of.map(({ path, before, after }) => (
        <div key={path}>
          <div className="d3">{path.slice(1).replaceAll("/", " › ")}</div>
          {before !== null && before !== undefined && <Line sign="−" value={before} className={css.minus} />}
          {after !== null && after !== undefined && <Line sign="+" value={after} className={css.plus} />}
          {(after === null || after === undefined) && (before === null || before === undefined) && (
            <Line sign=" " value={null} />
          )}
        </div>
      ))}
    </div>
  );
}

function Line({ sign, value, className = "" }: { sign: string; value: unknown; className?: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys scroll what is too long.
    <pre className={className} tabIndex={0}>
      {sign} {typeof value === "string" ? value : JSON.stringify(value, null, 1)}
    </pre>
  );
}
