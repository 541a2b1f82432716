import { type RefObject, useEffect, useState } from "react";
import type { Row } from "./lines";

export interface Span {
  first: number;
  last: number;
}

// The rows of which the reader has selected text. They must stay in the page, or scrolling would drop the selection.
export function useSelectedRows(box: RefObject<HTMLElement | null>, rows: readonly Row[]): Span | null {
  const [span, setSpan] = useState<Span | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: other rows have other places.
  useEffect(() => {
    const read = () => setSpan(selectedIn(box.current));
    read();
    document.addEventListener("selectionchange", read);
    return () => document.removeEventListener("selectionchange", read);
  }, [box, rows]);
  return span;
}

function selectedIn(box: HTMLElement | null): Span | null {
  const selection = document.getSelection();
  if (box === null || selection === null || selection.isCollapsed) return null;
  const ends = [indexOf(box, selection.anchorNode), indexOf(box, selection.focusNode)];
  const [one, other] = ends;
  if (one == null || other == null) return null;
  return { first: Math.min(one, other), last: Math.max(one, other) + 1 };
}

function indexOf(box: HTMLElement, node: Node | null): number | null {
  const element = node instanceof Element ? node : node?.parentElement;
  const line = element?.closest<HTMLElement>("[data-index]");
  return line && box.contains(line) ? Number(line.dataset.index) : null;
}

// Above so many rows a selection is dropped when it is scrolled out of sight.
const MOST = 5_000;

export function withSelected(drawn: Span, selected: Span | null): Span {
  if (selected === null) return drawn;
  const both = { first: Math.min(drawn.first, selected.first), last: Math.max(drawn.last, selected.last) };
  return both.last - both.first > MOST ? drawn : both;
}
