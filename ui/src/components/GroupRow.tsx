import type { ReactNode } from "react";
import type { Column } from "./DataTable";
import css from "./DataTable.module.css";

interface Props<T> {
  columns: readonly Column<T>[];
  head: Record<string, ReactNode>;
}

// The row above a group. Each given cell reaches up to the next given one.
export function GroupRow<T>({ columns, head }: Props<T>) {
  const starts = columns
    .map((column, index) => (index === 0 || column.key in head ? index : -1))
    .filter((at) => at >= 0);
  return (
    <tr className={css.group}>
      {starts.map((at, place) => {
        const column = columns[at];
        if (column === undefined) return null;
        const span = (starts[place + 1] ?? columns.length) - at;
        return (
          <td key={column.key} colSpan={span} className={column.isNumber && span === 1 ? "num" : ""}>
            {head[column.key]}
          </td>
        );
      })}
    </tr>
  );
}
