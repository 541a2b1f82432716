import { useEffect, useRef } from "react";
import { type KeyBinding, register } from "../app/keys";

// Keys of a page or a component, as long as it is on screen: { r: { does: "replay", run: … } }. A sequence is written with
// a space: "g o". Shift is the capital letter: X. Off while typing, and listed behind the key ?.
export function useKeys(bindings: Record<string, KeyBinding>): void {
  const latest = useRef(bindings);
  useEffect(() => {
    latest.current = bindings;
  });
  const names = Object.keys(bindings).join("\n");
  useEffect(() => {
    const stops = names === "" ? [] : names.split("\n").map((keys) => register(keys, () => latest.current[keys]));
    return () => {
      for (const stop of stops) stop();
    };
  }, [names]);
}
