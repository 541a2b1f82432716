import { useState } from "react";
import { useMe } from "../../api/session";
import type { Item } from "../../api/types";
import { Button } from "../../components/Button";
import { CopyCommand } from "../../components/CopyCommand";
import { type Column, DataTable } from "../../components/DataTable";
import { Panel } from "../../components/Panel";
import { Empty, Loaded } from "../../components/States";
import { useApi } from "../../hooks/useApi";
import { duration, plural } from "../../lib/format";
import { NamespaceDialog } from "./NamespaceDialog";
import { Section, type SectionProps } from "./Section";

type Namespace = Item<"/namespaces">;

export function Namespaces({ tabs }: SectionProps) {
  const { data: me } = useMe();
  const isOfAll = me?.namespaces.includes("*") ?? false;
  const namespaces = useApi("/namespaces", { query: { limit: 200 } }, { live: ["changes"], enabled: isOfAll });
  const [open, setOpen] = useState<string | null>(null);
  if (!isOfAll)
    return (
      <Section
        tabs={tabs}
        verdict={`Your token is of ${me?.namespaces.join(", ") ?? "one namespace"}`}
        support="An admin of all namespaces (*) sees and changes them."
      >
        <Panel>
          <Empty title="Nothing to change with this token" />
        </Panel>
      </Section>
    );
  return (
    <Section
      tabs={tabs}
      verdict={namespaces.data && verdictOf(namespaces.data.items)}
      support="A namespace has its own jobs, history, retention and quotas."
    >
      <Loaded what="Namespaces" query={namespaces}>
        {({ items }) => (
          <Panel isFlush>
            {items.length === 0 ? (
              <Empty title="Start a worker of your app">
                <span>A namespace appears with its first job. One with quotas can be made before:</span>
                <CopyCommand command="rota namespaces quotas NAME maxDepth=10000" />
              </Empty>
            ) : (
              <DataTable
                caption="Namespaces"
                columns={columnsOf(setOpen)}
                rows={items}
                rowKey={(one) => one.name}
                rowHeight={30}
                phone={(one) => (
                  <div className="row">
                    <span className="gr el">{one.name}</span>
                    <span className="sm d2">{keptWords(one)}</span>
                    <Button isSmall onClick={() => setOpen(one.name)}>
                      Change…
                    </Button>
                  </div>
                )}
              />
            )}
            {open !== null && <NamespaceDialog name={open} onClose={() => setOpen(null)} />}
          </Panel>
        )}
      </Loaded>
    </Section>
  );
}

function verdictOf(namespaces: readonly Namespace[]): string {
  if (namespaces.length === 0) return "No namespace is in use yet";
  const limited = namespaces.filter((one) => Object.values(one.quotas).some((value) => value !== null)).length;
  const quotas = limited === 0 ? "no quotas" : limited === namespaces.length ? "quotas" : `quotas on ${limited}`;
  return `${plural(namespaces.length, "namespace")} with ${quotas}`;
}

function columnsOf(change: (name: string) => void): readonly Column<Namespace>[] {
  return [
    { key: "name", head: "namespace", cell: (one) => <b>{one.name}</b>, width: 220 },
    { key: "kept", head: "history kept", cell: keptWords, width: 200 },
    { key: "quotas", head: "quotas", cell: (one) => <span className="sm d2 el">{quotaWords(one)}</span> },
    {
      key: "act",
      head: <span className="unseen">actions</span>,
      cell: (one) => (
        <Button isSmall onClick={() => change(one.name)}>
          Change…
        </Button>
      ),
      isNumber: true,
      width: 110,
    },
  ];
}

function keptWords(one: Namespace): string {
  const kept = one.retention === null ? "forever" : duration(one.retention);
  return one.hasOwnRetention ? kept : `${kept}, by the setting`;
}

function quotaWords(one: Namespace): string {
  const set = Object.entries(one.quotas).filter(([, value]) => value !== null);
  return set.length === 0 ? "none" : set.map(([name, value]) => `${name} ${value}`).join(" · ");
}
