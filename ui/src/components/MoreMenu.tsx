import { Menu } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { Button } from "./Button";
import { Icon } from "./Icon";
import css from "./MoreMenu.module.css";
import type { IconName } from "./sprite";

export interface MenuEntry {
  label: ReactNode;
  icon?: IconName;
  isOn?: boolean;
  run: () => void;
}

interface Props {
  // For screen readers: "More actions".
  label: string;
  entries: readonly MenuEntry[];
  // What opens it; three dots unless told.
  children?: ReactNode;
  // A button with this word opens it instead, such as "Columns".
  word?: string;
  icon?: IconName;
  // Whether it stays open after a choice, where several can be chosen.
  staysOpen?: boolean;
}

export function MoreMenu({ label, entries, children, word, icon, staysOpen = false }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Menu
      opened={isOpen}
      onChange={setOpen}
      position="bottom-end"
      closeOnItemClick={!staysOpen}
      transitionProps={{ duration: 0 }}
    >
      <Menu.Target>
        {word !== undefined ? (
          <Button icon={icon} aria-label={label}>
            {word}
          </Button>
        ) : children === undefined ? (
          <Button kind="quiet" icon="dots" aria-label={label} />
        ) : (
          <button type="button" className={css.target} aria-label={label}>
            {children}
          </button>
        )}
      </Menu.Target>
      <Menu.Dropdown className={css.menu}>
        {entries.map((entry, index) => (
          <Menu.Item
            // biome-ignore lint/suspicious/noArrayIndexKey: the entries of a menu keep their places.
            key={index}
            className={css.item}
            classNames={{ itemLabel: css.label }}
            leftSection={entry.icon !== undefined && <Icon name={entry.icon} />}
            rightSection={entry.isOn && <Icon name="tick" />}
            onClick={entry.run}
          >
            {entry.label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
