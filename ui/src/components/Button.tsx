import type { ButtonHTMLAttributes, ReactNode, Ref } from "react";
import { Link } from "wouter";
import css from "./Button.module.css";
import { Icon } from "./Icon";
import type { IconName } from "./sprite";

interface Look {
  // primary: the one thing to do. quiet: without a border.
  kind?: "plain" | "primary" | "quiet";
  isSmall?: boolean;
  icon?: IconName;
}

interface Props extends Look, Omit<ButtonHTMLAttributes<HTMLButtonElement>, "className"> {
  ref?: Ref<HTMLButtonElement>;
}

// A verb with its object or number: "Replay 412", "Pause queue mail…". "…" if a question follows.
export function Button({ kind = "plain", isSmall = false, icon, children, ...rest }: Props) {
  return (
    <button type="button" {...rest} className={classOf({ kind, isSmall })}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

interface LinkProps extends Look {
  href: string;
  children: ReactNode;
}

export function ButtonLink({ kind = "plain", isSmall = false, icon, href, children }: LinkProps) {
  return (
    <Link href={href} className={classOf({ kind, isSmall })}>
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </Link>
  );
}

function classOf({ kind, isSmall }: Look): string {
  return [css.button, isSmall ? css.small : "", kind === "plain" ? "" : css[kind ?? ""]].join(" ");
}
