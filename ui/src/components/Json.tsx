import { CopyButton } from "./CopyButton";
import css from "./Json.module.css";

interface Props {
  value: unknown;
  // What it is, for the button: "the arguments".
  label: string;
}

// A value as text. Names are not quoted where they need no quotes; copying gives JSON.
export function Json({ value, label }: Props) {
  return (
    <div className={css.json}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys scroll what is too long. */}
      <pre tabIndex={0}>{written(value, "")}</pre>
      <span className={css.copy}>
        <CopyButton text={JSON.stringify(value, null, 2)} label={`Copy ${label}`} />
      </span>
    </div>
  );
}

function written(value: unknown, indent: string): string {
  const deeper = `${indent}  `;
  if (Array.isArray(value)) {
    if (value.length === 0) return "[]";
    return `[\n${value.map((one) => deeper + written(one, deeper)).join(",\n")}\n${indent}]`;
  }
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value);
    if (entries.length === 0) return "{}";
    const lines = entries.map(([name, one]) => `${deeper}${nameOf(name)}: ${written(one, deeper)}`);
    return `{\n${lines.join(",\n")}\n${indent}}`;
  }
  return JSON.stringify(value) ?? "null";
}

function nameOf(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
}
