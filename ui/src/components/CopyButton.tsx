import { useState } from "react";
import css from "./Button.module.css";
import { Icon } from "./Icon";

interface Props {
  text: string;
  // What is copied, for screen readers: "Copy the id".
  label: string;
  // A word beside the icon.
  word?: string;
}

export function CopyButton({ text, label, word }: Props) {
  const [hasCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <button
      type="button"
      className={`${css.button} ${css.small} ${css.quiet}`}
      aria-label={label}
      onClick={() => void copy()}
    >
      <Icon name={hasCopied ? "tick" : "copy"} />
      {word !== undefined && <span>{hasCopied ? "Copied" : word}</span>}
    </button>
  );
}
