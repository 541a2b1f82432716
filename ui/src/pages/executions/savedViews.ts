import { stored } from "../../lib/stored";

export interface SavedView {
  name: string;
  search: string;
}

// As JSON.
export const storedViews = stored<string>("rota.views", "[]");

export function parsedViews(text: string): SavedView[] {
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) ? found.filter(isView) : [];
  } catch {
    return [];
  }
}

function isView(value: unknown): value is SavedView {
  const view = value as Partial<SavedView> | null;
  return typeof view?.name === "string" && typeof view.search === "string";
}
