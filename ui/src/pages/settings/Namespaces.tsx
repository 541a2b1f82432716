import { useState } from "react";
import { useMe } from "../../api/session";
import type { Item } from "../../api/types";
import { Button } from "../../components/Button";
import { type Column, DataTable } from "../../components/DataTable";
import { Panel } from "../../components/Panel";
import { Empty, Loaded } from "../../components/States";
import { useApi } from "../../hooks/useApi";
import { duration } from "../../lib/format";
import { NamespaceDialog } from "./NamespaceDialog";

type Namespace = Item<"/namespaces">;

export function Namespaces() {
  const { data: me } = useMe();
  const isOfAll = me?.namespaces.includes("*") ?? false;
  const namespaces = useApi("/namespaces", { query: { limit: 200 } }, { live: ["changes"], enabled: isOfAll });
  const [open, setOpen] = useState<string | null>(null);
  if (!isOfAll)
    return (
      <Panel title="Namespaces">
        <Empty title="Your token is for one namespace">An admin of all namespaces (*) sees and changes them.</Empty>
      </Panel>
    );
  return (
    <Loaded what="Namespaces" query={namespaces}>
      {({ items }) => (
        <Panel title="Namespaces" note="tenants with retention and quotas of their own" isFlush>
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
          {open !== null && <NamespaceDialog name={open} onClose={() => setOpen(null)} />}
        </Panel>
      )}
    </Loaded>
  );
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
