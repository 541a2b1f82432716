import { useMemo, useState } from "react";
import { Button } from "../../../components/Button";
import { Icon } from "../../../components/Icon";
import { count } from "../../../lib/format";
import css from "./Log.module.css";
import type { Row } from "./lines";

interface Props {
  rows: readonly Row[];
  text: string;
  onText: (text: string) => void;
  // Brings a row into view.
  onShow: (row: number) => void;
}

// Finds a text in all lines, also in those that are not drawn. Enter: the next one; Shift+Enter: the one before.
export function Search({ rows, text, onText, onShow }: Props) {
  const [at, setAt] = useState(0);
  const found = useMemo(() => matchesOf(rows, text), [rows, text]);
  const move = (step: number) => {
    if (found.length === 0) return;
    const next = (at + step + found.length) % found.length;
    setAt(next);
    onShow(found[next] ?? 0);
  };
  const type = (next: string) => {
    onText(next);
    const first = matchesOf(rows, next);
    setAt(0);
    if (first[0] !== undefined) onShow(first[0]);
  };
  return (
    <span className={css.search}>
      <Icon name="search" />
      <input
        aria-label="Search the log"
        placeholder="Search"
        value={text}
        onChange={(event) => type(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") move(event.shiftKey ? -1 : 1);
          if (event.key === "Escape") type("");
        }}
      />
      {text !== "" && (
        <>
          <span className="xs d3 nw" role="status">
            {found.length === 0 ? "none" : `${count(Math.min(at + 1, found.length))} of ${count(found.length)}`}
          </span>
          <Button isSmall kind="quiet" icon="up" aria-label="Previous match" onClick={() => move(-1)} />
          <Button isSmall kind="quiet" icon="down" aria-label="Next match" onClick={() => move(1)} />
        </>
      )}
    </span>
  );
}

function matchesOf(rows: readonly Row[], text: string): number[] {
  if (text === "") return [];
  const wanted = text.toLowerCase();
  const found: number[] = [];
  rows.forEach((row, index) => {
    if (row.kind === "line" && row.line.text.toLowerCase().includes(wanted)) found.push(index);
  });
  return found;
}
