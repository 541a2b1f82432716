import type { ReactNode } from "react";
import { DataTable } from "../../components/DataTable";
import { useIsTight } from "../../hooks/useMedia";
import { useNow } from "../../hooks/useNow";
import type { Selection } from "../../hooks/useSelection";
import { useSignal } from "../../lib/signal";
import { chosen, columnsOf } from "./columns";
import type { ExecutionItem } from "./filter";
import { OnPhone } from "./OnPhone";

interface Props {
  rows: readonly ExecutionItem[];
  href: (id: string) => string;
  selection?: Selection<ExecutionItem>;
  before?: ReactNode;
  isOfOneJob?: boolean;
}

export function ExecutionTable({ rows, href, selection, before, isOfOneJob = false }: Props) {
  const now = useNow();
  const names = useSignal(chosen);
  const isTight = useIsTight();
  return (
    <DataTable
      caption="Executions, newest first"
      columns={columnsOf(names, { now, href, isTight, isOfOneJob })}
      rows={rows}
      rowKey={(row) => row.executionId ?? ""}
      href={(row) => href(row.executionId ?? "")}
      selection={selection}
      before={before}
      phone={(row) => <OnPhone row={row} href={href} />}
    />
  );
}
