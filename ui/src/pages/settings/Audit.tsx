import { Link } from "wouter";
import type { Item } from "../../api/types";
import { type Column, DataTable } from "../../components/DataTable";
import { FilterTokens } from "../../components/FilterTokens";
import { Pager } from "../../components/Pager";
import { Panel } from "../../components/Panel";
import { Empty, Loaded } from "../../components/States";
import { Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { useUrlState } from "../../hooks/useUrlState";
import { plural } from "../../lib/format";
import { AuditChange } from "./AuditChange";
import { AuditEntry } from "./AuditEntry";
import { Section, type SectionProps } from "./Section";

type Entry = Item<"/audit">;

const FILTERS = [{ name: "actor" }, { name: "action" }, { name: "subject" }];

const columnsOf = (href: (entry: Entry) => string): readonly Column<Entry>[] => [
  { key: "at", head: "when", cell: (entry) => <Time at={entry.at} />, width: 120 },
  { key: "actor", head: "who", cell: (entry) => <span className="el">{entry.actor}</span>, width: 140 },
  { key: "action", head: "what", cell: (entry) => <Action entry={entry} href={href(entry)} />, width: 170 },
  { key: "subject", head: "of", cell: (entry) => <span className="el">{entry.subject}</span>, width: "20%" },
  { key: "change", head: "before → after", cell: (entry) => <AuditChange before={entry.before} after={entry.after} /> },
  {
    key: "from",
    head: "from",
    cell: (entry) => <span className="sm d2">{entry.address ?? "—"}</span>,
    width: 120,
    isExtra: true,
  },
];

// Who changed what. A row opens to show the values as a whole.
export function Audit({ tabs }: SectionProps) {
  const url = useUrlState();
  const href = (entry: Entry) => url.href({ entry: entry.auditId });
  const one = (name: string) => url.one(name) ?? undefined;
  const query = {
    limit: 50,
    actor: one("actor"),
    action: one("action"),
    subject: one("subject"),
    cursor: one("cursor"),
  };
  const entries = useApi("/audit", { query }, { live: ["changes"], everyMs: 2000 });
  const isFiltered = FILTERS.some(({ name }) => url.one(name) !== null);
  return (
    <Section
      tabs={tabs}
      verdict={entries.data && verdictOf(entries.data.items, isFiltered)}
      support={entries.data && <Last of={entries.data.items} />}
    >
      {(isFiltered || entries.data?.items.length !== 0) && (
        <FilterTokens
          filters={FILTERS}
          values={{ actor: url.all("actor"), action: url.all("action"), subject: url.all("subject") }}
          onChange={(name, values) => url.set({ [name]: values.slice(-1), cursor: null })}
        />
      )}
      <Loaded what="The audit trail" query={entries}>
        {({ items, nextCursor, previousCursor }) => (
          <Panel isFlush>
            {items.length === 0 ? (
              <Empty title={isFiltered ? "Drop a filter to see more" : "The first change appears here"} />
            ) : (
              <DataTable
                caption="Changes, newest first"
                columns={columnsOf(href)}
                href={href}
                rows={items}
                rowKey={(entry) => entry.auditId}
                phone={(entry) => (
                  <div className="col" style={{ gap: 4 }}>
                    <div className="row">
                      <span className="gr el">
                        <Action entry={entry} href={href(entry)} />
                      </span>
                      <Time at={entry.at} />
                    </div>
                    <span className="sm d2 el">
                      {entry.subject} by {entry.actor}
                    </span>
                  </div>
                )}
              />
            )}
            {items
              .filter((entry) => entry.auditId === url.one("entry"))
              .map((entry) => (
                <AuditEntry key={entry.auditId} entry={entry} onClose={() => url.set({ entry: null })} />
              ))}
            {items.length > 0 && (
              <Pager
                newer={previousCursor ? () => url.set({ cursor: previousCursor }) : undefined}
                older={nextCursor ? () => url.set({ cursor: nextCursor }) : undefined}
              >
                {plural(items.length, "change")} shown
              </Pager>
            )}
          </Panel>
        )}
      </Loaded>
    </Section>
  );
}

function verdictOf(entries: readonly Entry[], isFiltered: boolean): string {
  const [last] = entries;
  if (last === undefined) return isFiltered ? "No change matches" : "Nothing was changed yet";
  return `${isFiltered ? "Last change that matches" : "Last change"}: ${last.action} of ${last.subject}`;
}

function Last({ of: [last] }: { of: readonly Entry[] }) {
  if (last === undefined) return "Every change by a person or a program is listed here.";
  return (
    <>
      by {last.actor}, <Time at={last.at} />
    </>
  );
}

function Action({ entry, href }: { entry: Entry; href: string }) {
  return (
    <Link href={href} className="mono sm ln">
      {entry.action}
    </Link>
  );
}
