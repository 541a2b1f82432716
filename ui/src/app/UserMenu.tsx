import { useQueryClient } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { change } from "../api/client";
import { useMe } from "../api/session";
import { Icon } from "../components/Icon";
import { type MenuEntry, MoreMenu } from "../components/MoreMenu";
import { useSignal } from "../lib/signal";
import { THEMES, theme } from "../lib/theme";
import css from "./UserMenu.module.css";

const WORDS = { system: "Theme of the system", light: "Light theme", dark: "Dark theme" };

// Who is signed in and as what; theme, and a way out.
export function UserMenu() {
  const client = useQueryClient();
  const [, go] = useLocation();
  const { data: me } = useMe();
  const chosen = useSignal(theme);
  if (me === undefined) return null;
  const signOut = async () => {
    await change("delete", "/session");
    client.clear();
    go("/sign-in");
  };
  const themes: MenuEntry[] = THEMES.map((one) => ({
    label: WORDS[one],
    isOn: one === chosen,
    run: () => theme.set(one),
  }));
  const who = [me.actor.replace(/^\w+:/, ""), me.role].filter(Boolean).join(" · ");
  const hasSession = me.actor.startsWith("session:");
  const out: MenuEntry[] = hasSession ? [{ label: "Sign out", icon: "right", run: () => void signOut() }] : [];
  return (
    <div className={css.user}>
      <MoreMenu label={`${who}: theme and sign-out`} entries={[...themes, ...out]}>
        <Icon name="person" />
        <span className={`el ${css.word}`}>{who}</span>
      </MoreMenu>
    </div>
  );
}
