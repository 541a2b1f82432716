import { type RefObject, useEffect, useRef, useState } from "react";

interface Held<T> {
  // In the order that the reader saw first; those that are gone have `isGone`.
  rows: readonly { key: string; item: T; isGone: boolean }[];
  // For the element around the rows.
  hold: {
    ref: RefObject<HTMLDivElement | null>;
    onPointerEnter: () => void;
    onPointerLeave: () => void;
    onFocus: () => void;
    onBlur: () => void;
  };
}

// Keeps the places of rows while the pointer or the focus is on them: values change, rows that are gone stay until the
// pointer leaves, and new ones come last.
export function useHeld<T>(items: readonly T[], keyOf: (item: T) => string): Held<T> {
  const [reasons, setReasons] = useState({ pointer: false, focus: false });
  const shown = useRef<{ key: string; item: T }[]>([]);
  const isHeld = reasons.pointer || reasons.focus;
  const now = new Map(items.map((item) => [keyOf(item), item]));
  const kept = isHeld ? shown.current : [];
  const keptKeys = new Set(kept.map((row) => row.key));
  const rows = [
    ...kept.map(({ key, item }) => ({ key, item: now.get(key) ?? item, isGone: !now.has(key) })),
    ...[...now].filter(([key]) => !keptKeys.has(key)).map(([key, item]) => ({ key, item, isGone: false })),
  ];
  shown.current = rows;
  const set = (reason: "pointer" | "focus", value: boolean) =>
    setReasons((before) => (before[reason] === value ? before : { ...before, [reason]: value }));
  const box = useRef<HTMLDivElement>(null);
  // An element that is removed while it has the focus sends no event.
  useEffect(() => {
    if (reasons.focus && !box.current?.contains(document.activeElement)) set("focus", false);
  });
  return {
    rows,
    hold: {
      ref: box,
      onPointerEnter: () => set("pointer", true),
      onPointerLeave: () => set("pointer", false),
      onFocus: () => set("focus", true),
      onBlur: () => set("focus", false),
    },
  };
}
