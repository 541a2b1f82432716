import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type RefObject, useLayoutEffect, useState } from "react";

const MANY = 150;

interface Visible {
  first: number;
  last: number;
  // Pixels of the rows that are not drawn.
  above: number;
  below: number;
}

// Which rows of a long table are drawn. Heights are fixed, never measured, so nothing jumps.
export function useVisibleRows(body: RefObject<HTMLElement | null>, count: number, height: number): Visible {
  const isLong = count > MANY;
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    if (isLong && body.current !== null) setTop(body.current.getBoundingClientRect().top + window.scrollY);
  }, [isLong, body]);
  const virtual = useWindowVirtualizer({
    count: isLong ? count : 0,
    estimateSize: () => height,
    overscan: 20,
    scrollMargin: top,
  });
  if (!isLong) return { first: 0, last: Number.POSITIVE_INFINITY, above: 0, below: 0 };
  const items = virtual.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = (items.at(-1)?.index ?? -1) + 1;
  return { first, last, above: first * height, below: (count - last) * height };
}
