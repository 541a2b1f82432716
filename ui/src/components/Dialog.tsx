import { Modal } from "@mantine/core";
import type { ReactNode } from "react";
import css from "./Dialog.module.css";

interface Props {
  title: ReactNode;
  onClose: () => void;
  // The buttons at the foot, the way back first.
  foot?: ReactNode;
  isWide?: boolean;
  children: ReactNode;
}

// The buttons at the end of a form that fills a dialog, the way back first.
export function FormFoot({ children }: { children: ReactNode }) {
  return <div className={css.formFoot}>{children}</div>;
}

// A question, a form or the palette above the page. Esc and a click beside it close it.
export function Dialog({ title, onClose, foot, isWide = false, children }: Props) {
  return (
    <Modal.Root
      opened
      onClose={onClose}
      lockScroll={false}
      transitionProps={{ duration: 0 }}
      classNames={{ inner: css.inner, content: `${css.content} ${isWide ? css.wide : ""}` }}
    >
      <Modal.Overlay className={css.overlay} />
      <Modal.Content>
        <Modal.Title className={css.title}>{title}</Modal.Title>
        <Modal.Body className={css.body}>{children}</Modal.Body>
        {foot !== undefined && <div className={css.foot}>{foot}</div>}
      </Modal.Content>
    </Modal.Root>
  );
}
