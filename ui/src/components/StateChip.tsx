import type { ReactNode } from "react";
import { type Colour, markOf } from "../lib/states";
import { Icon } from "./Icon";
import css from "./StateChip.module.css";
import { type IconName, isIcon } from "./sprite";

interface Props {
  status: string;
  // Tinted, at the head of a page.
  isHead?: boolean;
  children?: ReactNode;
}

// Icon and word of an execution's state. Success is quiet.
export function StateChip({ status, isHead = false, children }: Props) {
  const { icon, colour, word } = markOf(status);
  return (
    <MarkChip icon={isIcon(icon) ? icon : "dash"} colour={colour} isHead={isHead} isQuiet={status === "success"}>
      {children ?? word}
    </MarkChip>
  );
}

interface MarkProps {
  icon: IconName;
  colour: Colour | "warn";
  isHead?: boolean;
  isQuiet?: boolean;
  children: ReactNode;
}

// The same for the state of anything else: a paused queue, a lost worker.
export function MarkChip({ icon, colour, isHead = false, isQuiet = false, children }: MarkProps) {
  const tint = isHead ? { background: `var(--t-${colour})` } : undefined;
  return (
    <span className={`${css.chip} ${isHead ? css.head : ""} ${isQuiet && !isHead ? "d2" : ""}`} style={tint}>
      <Icon name={icon} className={`c-${colour}`} />
      <span className="el">{children}</span>
    </span>
  );
}
