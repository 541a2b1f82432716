import { useState } from "react";
import { Link } from "wouter";
import { useMay } from "../../api/session";
import type { Answer } from "../../api/types";
import { Button } from "../../components/Button";
import { type Column, DataTable } from "../../components/DataTable";
import { Empty, Loaded } from "../../components/States";
import { useApi } from "../../hooks/useApi";
import { capped } from "../../lib/format";
import { BulkDialog } from "../executions/bulk/BulkDialog";
import type { Target, Verb } from "../executions/bulk/verbs";
import type { ExecutionFilter } from "../executions/filter";
import { listAddress, targetFor } from "./group";

type Counted = Answer<"/counts">["groups"][number];

// The letters of each job.
export function ByJob({ filter }: { filter: ExecutionFilter }) {
  const may = useMay();
  const [asked, setAsked] = useState<{ verb: Verb; target: Target; job: string } | null>(null);
  const found = useApi(
    "/counts",
    { query: { ...filter, of: "executions", by: "job" } },
    { live: ["pulse"], everyMs: 5000 },
  );
  const of = (row: Counted): ExecutionFilter => ({ ...filter, job: [row.value ?? ""] });
  const ask = (verb: Verb, row: Counted) => setAsked({ verb, target: targetFor(of(row)), job: row.value ?? "" });
  const columns: Column<Counted>[] = [
    {
      key: "count",
      head: "letters",
      isNumber: true,
      width: 84,
      cell: (row) => <b>{capped(row.count, row.isCapped)}</b>,
    },
    {
      key: "job",
      head: "job",
      cell: (row) => (
        <Link href={listAddress(of(row))} className="ln" title={row.value ?? ""}>
          {row.value}
        </Link>
      ),
    },
    {
      key: "act",
      head: <span className="unseen">actions</span>,
      width: 190,
      isNumber: true,
      cell: (row) =>
        may("operate") && (
          <span className="row" style={{ gap: 4, justifyContent: "flex-end" }}>
            <Button isSmall onClick={() => ask("replay", row)}>
              Replay…
            </Button>
            <Button isSmall onClick={() => ask("discard", row)}>
              Discard…
            </Button>
          </span>
        ),
    },
  ];
  return (
    <>
      <Loaded what="Dead letters by job" query={found}>
        {(data: Answer<"/counts">) =>
          data.groups.length === 0 ? (
            <Empty title="No dead letter matches" />
          ) : (
            <DataTable
              caption="Dead letters by job"
              columns={columns}
              rows={data.groups}
              rowKey={(row) => row.value ?? ""}
              rowHeight={30}
            />
          )
        }
      </Loaded>
      {asked !== null && <BulkDialog {...asked} isDead onClose={() => setAsked(null)} />}
    </>
  );
}
