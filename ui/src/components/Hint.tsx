import { Tooltip } from "@mantine/core";
import type { ReactElement, ReactNode } from "react";
import css from "./Hint.module.css";

interface Props {
  text: ReactNode;
  children: ReactElement;
}

// More about something, on hover and on focus. It carries nothing that is not to be found elsewhere.
export function Hint({ text, children }: Props) {
  return (
    <Tooltip
      label={text}
      classNames={{ tooltip: css.hint }}
      openDelay={300}
      events={{ hover: true, focus: true, touch: true }}
      transitionProps={{ duration: 0 }}
    >
      {children}
    </Tooltip>
  );
}
