import { stored } from "./stored";

export type Theme = "system" | "light" | "dark";

export const THEMES: readonly Theme[] = ["system", "light", "dark"];
export const theme = stored<Theme>("rota.theme", "system", THEMES);

function apply(): void {
  const chosen = theme.get();
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

export function followTheme(): void {
  apply();
  theme.subscribe(apply);
}
