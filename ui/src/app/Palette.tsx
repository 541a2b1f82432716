import { type KeyboardEvent, useState } from "react";
import { useLocation } from "wouter";
import { Dialog } from "../components/Dialog";
import { Icon } from "../components/Icon";
import { Id } from "../components/Id";
import { useApi } from "../hooks/useApi";
import css from "./Palette.module.css";
import { closePalette } from "./palette";
import { type Choice, choicesOf } from "./paletteChoices";

// Find anything: pages, executions by the start of an id, and what has a name. Arrows move, Enter opens.
export function Palette() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [, go] = useLocation();
  const asked = text.trim();
  const found = useApi("/search", { query: { q: asked } }, { enabled: asked.length > 1 });
  const choices = choicesOf(asked, asked.length > 1 ? found.data : undefined);
  const open = (choice: Choice | undefined, isNewTab: boolean) => {
    if (choice === undefined) return;
    closePalette();
    if (isNewTab) window.open(choice.href, "_blank", "noopener");
    else go(choice.href);
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setAt((at + step + choices.length) % Math.max(1, choices.length));
    } else if (event.key === "Enter") {
      event.preventDefault();
      open(choices[at], event.ctrlKey || event.metaKey);
    }
  };
  return (
    <Dialog title={<span className="unseen">Find anything</span>} onClose={closePalette} isWide>
      <div className={css.ask}>
        <Icon name="search" size={16} />
        <input
          data-autofocus
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-choices"
          aria-activedescendant={`palette-${at}`}
          aria-label="Find anything"
          placeholder="A name, an id, or a page"
          value={text}
          onKeyDown={onKey}
          onChange={(event) => {
            setText(event.target.value);
            setAt(0);
          }}
        />
      </div>
      <div id="palette-choices" role="listbox" aria-label="Results" className={css.choices}>
        {choices.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field above.
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field above.
          <div
            key={choice.href}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at}
            className={index === at ? css.on : ""}
            onMouseMove={() => setAt(index)}
            onClick={(event) => open(choice, event.ctrlKey || event.metaKey)}
          >
            <Icon name={choice.icon} size={16} />
            <span className="gr el">
              <span className="d3">{choice.kind}</span> {choice.name} <span className="d2">{choice.note}</span>
            </span>
            {choice.id !== undefined && <Id id={choice.id} />}
          </div>
        ))}
        {choices.length === 0 && (
          <p className={`d2 ${css.none}`}>Nothing has this name, and no execution starts with it.</p>
        )}
      </div>
    </Dialog>
  );
}
