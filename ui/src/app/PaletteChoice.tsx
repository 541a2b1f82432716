import type { ReactNode } from "react";
import { Icon } from "../components/Icon";
import { Id } from "../components/Id";
import css from "./Palette.module.css";
import type { Choice } from "./paletteChoices";

interface Props {
  choice: Choice;
  index: number;
  typed: string;
  isOn: boolean;
  onPoint: () => void;
  onOpen: (isNewTab: boolean) => void;
}

export function PaletteChoice({ choice, index, typed, isOn, onPoint, onOpen }: Props) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field above.
    // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field above.
    <div
      id={`palette-${index}`}
      role="option"
      aria-selected={isOn}
      className={isOn ? css.on : ""}
      onMouseMove={onPoint}
      onClick={(event) => onOpen(event.ctrlKey || event.metaKey)}
    >
      <Icon name={choice.icon} size={16} className={choice.colour === undefined ? "" : `c-${choice.colour}`} />
      <span className="gr el">
        {choice.word} <Marked text={choice.name} typed={typed} /> <span className="d3">{choice.note}</span>
      </span>
      {choice.id !== undefined && <Id id={choice.id} />}
      {isOn && choice.id === undefined && <span className="sm d3 not-phone">Enter</span>}
    </div>
  );
}

// The words that were typed stand out.
function Marked({ text, typed }: { text: string; typed: string }): ReactNode {
  const lower = text.toLowerCase();
  const words = typed.toLowerCase().split(/[\s:]+/);
  const word = words.find((one) => one.length > 1 && lower.includes(one));
  if (word === undefined) return text;
  const at = lower.indexOf(word);
  return (
    <>
      {text.slice(0, at)}
      <b>{text.slice(at, at + word.length)}</b>
      {text.slice(at + word.length)}
    </>
  );
}
