import { type ComponentType, type LazyExoticComponent, lazy } from "react";
import addresses from "../../../src/rota/api/pages/addresses.json";

// The addresses are in one file, which the server reads as well. A page is the file of its name in ui/src/pages; the file
// exports its component as default. The menu is in places.ts.

export type PageProps = { params: Record<string, string> };
type PageComponent = LazyExoticComponent<ComponentType<PageProps>>;

export interface PageRoute {
  // As wouter writes it: /executions/:execution.
  pattern: string;
  page: string;
  component: PageComponent | null;
}

const files = import.meta.glob<{ default: ComponentType<PageProps> }>("../pages/*.tsx");

const components = new Map<string, PageComponent | null>();

function componentOf(page: string): PageComponent | null {
  const known = components.get(page);
  if (known !== undefined) return known;
  const load = files[`../pages/${page}.tsx`];
  const component = load === undefined ? null : lazy(load);
  components.set(page, component);
  return component;
}

export const ROUTES: readonly PageRoute[] = addresses.map(({ path, page }) => ({
  pattern: path.replace(/\{(\w+)\}/g, ":$1"),
  page,
  component: componentOf(page),
}));
