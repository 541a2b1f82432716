import { useState } from "react";
import type { Item } from "../../api/types";
import { Button } from "../../components/Button";
import { CopyCommand } from "../../components/CopyCommand";
import { type Column, DataTable } from "../../components/DataTable";
import { Panel } from "../../components/Panel";
import { MarkChip } from "../../components/StateChip";
import { Empty, Loaded } from "../../components/States";
import { Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { plural } from "../../lib/format";
import { CreateToken } from "./CreateToken";
import { NewSecret } from "./NewSecret";
import { RevokeToken } from "./RevokeToken";
import { RotateToken } from "./RotateToken";
import { Section, type SectionProps } from "./Section";

type Token = Item<"/tokens">;
export type Secret = { name: string; secret: string | null };

// Tokens with their rights. The secret of a new one is shown once.
export function Tokens({ tabs }: SectionProps) {
  const tokens = useApi("/tokens", { query: { limit: 200 } }, { live: ["changes"] });
  const [isCreating, setCreating] = useState(false);
  const [made, setMade] = useState<Secret | null>(null);
  return (
    <Section
      tabs={tabs}
      verdict={tokens.data && verdictOf(tokens.data.items)}
      support={tokens.data && supportOf(tokens.data.items)}
    >
      <Loaded what="Tokens" query={tokens}>
        {({ items }) => (
          <Panel
            title="Tokens"
            // The first token locks out all who have none, this page too: it is made where the database is.
            right={items.length > 0 && <Button onClick={() => setCreating(true)}>New token…</Button>}
            isFlush
          >
            {items.length === 0 ? (
              <Empty title="Switch authentication on">
                <span>The first token does it, for good. Make it for yourself, as admin of all namespaces:</span>
                <CopyCommand command="rota tokens create root --role admin --in '*'" />
              </Empty>
            ) : (
              <DataTable
                caption="Tokens"
                columns={columnsOf(setMade)}
                rows={items}
                rowKey={(token) => token.tokenId}
                rowHeight={30}
                phone={(token) => (
                  <div className="col" style={{ gap: 4 }}>
                    <div className="row">
                      <b className="gr el">{token.name}</b>
                      <State token={token} />
                    </div>
                    <span className="sm d2 el">{rightsOf(token)}</span>
                    <Actions token={token} onMade={setMade} />
                  </div>
                )}
              />
            )}
            {isCreating && <CreateToken onMade={setMade} onClose={() => setCreating(false)} />}
            {made !== null && <NewSecret made={made} onClose={() => setMade(null)} />}
          </Panel>
        )}
      </Loaded>
    </Section>
  );
}

function verdictOf(tokens: readonly Token[]): string {
  if (tokens.length === 0) return "No token was made: every caller on this machine may do everything";
  const active = tokens.filter((token) => token.state === "active").length;
  return active === 1 ? "1 token is active" : `${active} tokens are active`;
}

function supportOf(tokens: readonly Token[]): string {
  if (tokens.length === 0) return "The server answers only to callers on its own machine.";
  const others = tokens.filter((token) => token.state !== "active").length;
  const ended = others === 0 ? "" : `${plural(others, "other")} revoked or expired. `;
  return `${ended}Callers send one in the header Authorization.`;
}

function columnsOf(onMade: (made: Secret) => void): readonly Column<Token>[] {
  return [
    { key: "name", head: "token", cell: (token) => <b className="el">{token.name}</b> },
    { key: "state", head: "state", cell: (token) => <State token={token} />, width: 120 },
    { key: "rights", head: "may", cell: (token) => <span className="sm d2 el">{rightsOf(token)}</span> },
    { key: "ends", head: "ends in", cell: (token) => <span className="mono sm">…{token.ending}</span>, width: 90 },
    { key: "used", head: "last used", cell: (token) => <When at={token.lastUsedAt} none="never" />, width: 140 },
    { key: "expires", head: "expires", cell: (token) => <When at={token.expiresAt} none="never" />, width: 150 },
    {
      key: "act",
      head: <span className="unseen">actions</span>,
      cell: (token) => <Actions token={token} onMade={onMade} />,
      isNumber: true,
      width: 180,
    },
  ];
}

function When({ at, none }: { at: string | null; none: string }) {
  return at === null ? <span className="d3">{none}</span> : <Time at={at} />;
}

function Actions({ token, onMade }: { token: Token; onMade: (made: Secret) => void }) {
  if (token.revokedAt !== null) return null;
  return (
    <span className="row" style={{ justifyContent: "flex-end" }}>
      <RotateToken token={token} onMade={onMade} />
      <RevokeToken token={token} />
    </span>
  );
}

function State({ token }: { token: Token }) {
  if (token.state === "active")
    return (
      <MarkChip icon="tick" colour="success" isQuiet>
        Active
      </MarkChip>
    );
  return (
    <MarkChip icon="dash" colour="rest" isQuiet>
      {token.state.charAt(0).toUpperCase() + token.state.slice(1)}
    </MarkChip>
  );
}

function rightsOf(token: Token): string {
  return `${token.role ?? token.scopes.join(", ")} in ${token.namespaces.join(", ")}`;
}
