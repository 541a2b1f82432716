// The keyboard: one listener for the tab, and a stack of bindings, of which the newest wins.

export interface KeyBinding {
  // What it does, for the list behind "?".
  does: string;
  run: () => void;
  // Left out of the list.
  isHidden?: boolean;
}

interface Entry {
  keys: string;
  binding: () => KeyBinding | undefined;
}

const SEQUENCE_MS = 1_200;
const entries: Entry[] = [];
let begun: { key: string; at: number } | null = null;
let isCovered = false;

export function register(keys: string, binding: () => KeyBinding | undefined): () => void {
  const entry = { keys, binding };
  entries.push(entry);
  return () => {
    entries.splice(entries.indexOf(entry), 1);
  };
}

export function listed(): { keys: string; does: string }[] {
  const found = new Map<string, string>();
  for (const { keys, binding } of entries) {
    const one = binding();
    if (one !== undefined && !one.isHidden) found.set(keys, one.does);
  }
  return [...found].map(([keys, does]) => ({ keys, does }));
}

export function followKeys(): () => void {
  window.addEventListener("keydown", lookFirst, { capture: true });
  window.addEventListener("keydown", onKey);
  return () => {
    window.removeEventListener("keydown", lookFirst, { capture: true });
    window.removeEventListener("keydown", onKey);
  };
}

// A dialog and a menu have keys of their own. Esc has closed them before onKey is called.
function lookFirst(): void {
  isCovered = document.querySelector("[role=dialog], [role=menu]") !== null;
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const key = nameOf(event);
  if (key === null || (isTyping(event.target) && key !== "Ctrl+k")) return;
  const sequence = begun !== null && Date.now() - begun.at < SEQUENCE_MS ? `${begun.key} ${key}` : null;
  begun = null;
  const found = (sequence === null ? undefined : bindingOf(sequence)) ?? bindingOf(key);
  if (found !== undefined) {
    event.preventDefault();
    found.run();
  } else if (entries.some((entry) => entry.keys.startsWith(`${key} `))) {
    begun = { key, at: Date.now() };
  }
}

function nameOf(event: KeyboardEvent): string | null {
  if (event.altKey) return null;
  const isCommand = event.ctrlKey || event.metaKey;
  if (isCommand) return event.key.toLowerCase() === "k" ? "Ctrl+k" : null;
  if (isCovered) return null;
  const isOnControl = event.target instanceof HTMLElement && event.target.closest("button, a, summary");
  if (isOnControl && (event.key === "Enter" || event.key === " ")) return null;
  return event.key;
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  const isText = target instanceof HTMLInputElement && !["checkbox", "radio", "button"].includes(target.type);
  return isText || target.isContentEditable || ["TEXTAREA", "SELECT"].includes(target.tagName);
}

function bindingOf(keys: string): KeyBinding | undefined {
  for (const entry of [...entries].reverse()) {
    const found = entry.keys === keys ? entry.binding() : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}
