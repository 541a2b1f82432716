import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useState } from "react";
import { useLocation } from "wouter";
import { change } from "../api/client";
import { type Problem, problemOf } from "../api/problem";
import { ME } from "../api/session";
import { Logo } from "../app/Logo";
import { Button } from "../components/Button";
import { CopyCommand } from "../components/CopyCommand";
import { Field } from "../components/Field";
import { useUrlState } from "../hooks/useUrlState";
import css from "./SignIn.module.css";

// A browser trades a token for a cookie that scripts cannot read. The token itself is not kept.
export default function SignIn() {
  const client = useQueryClient();
  const url = useUrlState();
  const [, go] = useLocation();
  const [token, setToken] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    document.title = "Sign in · Rota";
  }, []);
  const signIn = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await change("post", "/session", { body: { token: token.trim() } });
      await client.resetQueries({ queryKey: ME });
      go(own(url.one("then")), { replace: true });
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  };
  return (
    <main className={css.page}>
      <form className={css.form} onSubmit={(event) => void signIn(event)}>
        <h1>
          <Logo size={24} /> Sign in to Rota
        </h1>
        <p className="d2">With a token that an admin has made for you. The browser keeps a session, not the token.</p>
        <Field label="token" error={problem?.message ?? null}>
          {(id, describedBy) => (
            <input
              id={id}
              className={css.token}
              type="password"
              autoComplete="current-password"
              spellCheck={false}
              // biome-ignore lint/a11y/noAutofocus: it is the one thing to do on this page.
              autoFocus
              required
              value={token}
              aria-describedby={describedBy}
              onChange={(event) => setToken(event.target.value)}
            />
          )}
        </Field>
        <Button kind="primary" type="submit" disabled={isBusy || token.trim() === ""}>
          Sign in
        </Button>
        <p className="sm d3">An admin makes a token with</p>
        <CopyCommand command="rota tokens create NAME --role operator" />
      </form>
    </main>
  );
}

// Only an address of this page: another host would be a trap.
function own(address: string | null): string {
  return address !== null && /^\/(?![/\\])/.test(address) ? address : "/";
}
