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
import { cautionsOfJobs } from "./against";
import { Cautions } from "./Cautions";
import { listAddress, targetFor } from "./group";

type Counted = Answer<"/counts">["groups"][number];

interface Asked {
  verb: Verb;
  target: Target;
  job: string;
  cautions: readonly string[];
}

// The letters of each job.
export function ByJob({ filter }: { filter: ExecutionFilter }) {
  const may = useMay();
  const [asked, setAsked] = useState<Asked | null>(null);
  const found = useApi(
    "/counts",
    { query: { ...filter, of: "executions", by: "job" } },
    { live: ["pulse"], everyMs: 5000 },
  );
  const of = (row: Counted): ExecutionFilter => ({ ...filter, job: [row.value ?? ""] });
  const ask = async (verb: Verb, row: Counted) => {
    const job = row.value ?? "";
    const cautions = verb === "replay" ? await cautionsOfJobs([job]) : [];
    setAsked({ verb, target: targetFor(of(row)), job, cautions });
  };
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
            <Button isSmall onClick={() => void ask("replay", row)}>
              Replay…
            </Button>
            <Button isSmall onClick={() => void ask("discard", row)}>
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
      {asked !== null && (
        <BulkDialog
          verb={asked.verb}
          target={asked.target}
          job={asked.job}
          isDead
          warning={asked.cautions.length === 0 ? undefined : <Cautions of={asked.cautions} />}
          onClose={() => setAsked(null)}
        />
      )}
    </>
  );
}
