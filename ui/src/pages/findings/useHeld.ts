import { type RefObject, useEffect, useRef, useState } from "react";

// A pointer that rests for longer is not about to press something.
const RESTS_MS = 10_000;

interface Held<T> {
  // Those that are gone have `isGone`.
  rows: readonly { key: string; item: T; isGone: boolean }[];
  // For the element around the rows.
  hold: { ref: RefObject<HTMLDivElement | null> };
}

// In the order given. While the pointer moves over them rows keep their places: values change, rows that are gone stay,
// and new ones come last. All take their places when the pointer leaves or rests.
export function useHeld<T>(items: readonly T[], keyOf: (item: T) => string): Held<T> {
  const box = useRef<HTMLDivElement>(null);
  const isHeld = useIsPointedAt(box);
  const shown = useRef<{ key: string; item: T }[]>([]);
  const now = new Map(items.map((item) => [keyOf(item), item]));
  const kept = isHeld ? shown.current : [];
  const keptKeys = new Set(kept.map((row) => row.key));
  const rows = [
    ...kept.map(({ key, item }) => ({ key, item: now.get(key) ?? item, isGone: !now.has(key) })),
    ...[...now].filter(([key]) => !keptKeys.has(key)).map(([key, item]) => ({ key, item, isGone: false })),
  ];
  shown.current = rows;
  return { rows, hold: { ref: box } };
}

// Asks the document where the pointer is: a dialog that opens over the element and closes again sends no leave.
function useIsPointedAt(box: RefObject<HTMLElement | null>): boolean {
  const [isOn, setOn] = useState(false);
  useEffect(() => {
    let rests: ReturnType<typeof setTimeout> | undefined;
    const off = () => {
      clearTimeout(rests);
      setOn(false);
    };
    const look = (event: PointerEvent) => {
      if (!(event.target instanceof Node) || !box.current?.contains(event.target)) return off();
      clearTimeout(rests);
      rests = setTimeout(off, RESTS_MS);
      setOn(true);
    };
    document.addEventListener("pointermove", look);
    document.addEventListener("pointerdown", look);
    document.addEventListener("pointerleave", off);
    return () => {
      off();
      document.removeEventListener("pointermove", look);
      document.removeEventListener("pointerdown", look);
      document.removeEventListener("pointerleave", off);
    };
  }, [box]);
  return isOn;
}
