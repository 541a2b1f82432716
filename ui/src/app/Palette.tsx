import { type KeyboardEvent, useState } from "react";
import { useLocation } from "wouter";
import { Dialog } from "../components/Dialog";
import { Kbd } from "../components/Facts";
import { Icon } from "../components/Icon";
import { LeftHistory } from "../components/LeftHistory";
import css from "./Palette.module.css";
import { PaletteAsk } from "./PaletteAsk";
import { PaletteChoice } from "./PaletteChoice";
import { closePalette } from "./palette";
import type { Ask, Choice } from "./paletteChoices";
import { useResults } from "./usePalette";

// Find anything: pages, executions, what has a name, and what can be done with it. Arrows move, Enter opens.
export function Palette() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [asked, setAsked] = useState<Ask | null>(null);
  const [, go] = useLocation();
  const { choices, isSettled } = useResults(text);
  const open = (choice: Choice | undefined, isNewTab: boolean) => {
    if (choice?.ask !== undefined) return setAsked(choice.ask);
    if (choice?.href === undefined) return;
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
  if (asked !== null) return <PaletteAsk ask={asked} onClose={closePalette} />;
  const kinds = [...new Set(choices.map((choice) => choice.kind))];
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
        <span className="not-phone">
          <Kbd>Esc</Kbd>
        </span>
      </div>
      <div id="palette-choices" role="listbox" aria-label="Results" className={css.choices}>
        {kinds.map((kind) => (
          // biome-ignore lint/a11y/useSemanticElements: a fieldset would be a group of form fields.
          <div key={kind} role="group" aria-label={kind}>
            <div className={`sm d3 ${css.kind}`} aria-hidden="true">
              {kind}
            </div>
            {choices.map(
              (choice, index) =>
                choice.kind === kind && (
                  <PaletteChoice
                    key={choice.key}
                    choice={choice}
                    index={index}
                    typed={text}
                    isOn={index === at}
                    onPoint={() => setAt(index)}
                    onOpen={(isNewTab) => open(choice, isNewTab)}
                  />
                ),
            )}
          </div>
        ))}
        {choices.length === 0 && isSettled && (
          <p className={`d2 ${css.none}`}>
            Nothing is called {text.trim()}, and no execution starts with it. <LeftHistory />
          </p>
        )}
      </div>
      <div className={`sm d3 not-phone ${css.foot}`}>
        <span>
          <Kbd>↑</Kbd> <Kbd>↓</Kbd> move
        </span>
        <span>
          <Kbd>Enter</Kbd> open
        </span>
        <span>
          <Kbd>Ctrl Enter</Kbd> in a new tab
        </span>
        <span className="gr" />
        <span>
          Paste an id, or try <code>job:charge state:failed</code>
        </span>
      </div>
    </Dialog>
  );
}
