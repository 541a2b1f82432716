import { signal } from "../lib/signal";

export const isPaletteOpen = signal(false);

export function openPalette(): void {
  isPaletteOpen.set(true);
}

export function closePalette(): void {
  isPaletteOpen.set(false);
}
