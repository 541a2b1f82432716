import { type ReactNode, useEffect, useState } from "react";
import { useLocation } from "wouter";
import { start, toggleHold } from "../api/live";
import { useKeys } from "../hooks/useKeys";
import { useTimeRange } from "../hooks/useTimeRange";
import { useZone } from "../hooks/useZone";
import { useSignal } from "../lib/signal";
import { announced } from "./announce";
import { BottomBar } from "./BottomBar";
import { KeyList } from "./KeyList";
import { Palette } from "./Palette";
import { isPaletteOpen, openPalette } from "./palette";
import { addressOf, PLACES } from "./places";
import { Rail } from "./Rail";
import css from "./Shell.module.css";

// What stays while pages change: rail, bottom bar, palette, keys, and the stream.
export function Shell({ children }: { children: ReactNode }) {
  useEffect(start, []);
  const [hasKeys, setKeys] = useState(false);
  useGlobalKeys(() => setKeys(true));
  return (
    <div className={css.app}>
      <a href="#main" className={css.skip}>
        Skip to the page
      </a>
      <Rail />
      <div id="main" className={css.main}>
        {children}
      </div>
      <BottomBar />
      {useSignal(isPaletteOpen) && <Palette />}
      {hasKeys && <KeyList onClose={() => setKeys(false)} />}
      <div className="unseen" role="status" aria-live="polite">
        {useSignal(announced)}
      </div>
    </div>
  );
}

function useGlobalKeys(showList: () => void): void {
  const [, go] = useLocation();
  const { toggle } = useZone();
  const { since } = useTimeRange();
  const places = PLACES.filter((place) => place.key !== undefined).map((place) => [
    `g ${place.key}`,
    { does: `go to ${place.label}`, run: () => go(addressOf(place, since)) },
  ]);
  useKeys({
    ...Object.fromEntries(places),
    "/": { does: "find anything", run: openPalette },
    "Ctrl+k": { does: "find anything", run: openPalette },
    t: { does: "local time or UTC", run: toggle },
    ".": { does: "hold the page", run: toggleHold },
    "?": { does: "this list", run: showList },
  });
}
