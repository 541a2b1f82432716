import css from "./Icon.module.css";
import type { IconName } from "./sprite";

interface Props {
  name: IconName;
  size?: 14 | 16 | 18 | 20;
  className?: string;
}

// Always beside a word, so it says nothing to a screen reader.
export function Icon({ name, size = 14, className = "" }: Props) {
  return (
    <svg className={`${css.icon} ${className}`} width={size} height={size} aria-hidden="true">
      <use href={`#i-${name}`} />
    </svg>
  );
}
