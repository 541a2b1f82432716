import { type ReactNode, useEffect, useRef } from "react";
import { useIsPhone, useIsTight } from "../hooks/useMedia";
import { useRowKeys } from "../hooks/useRowKeys";
import type { Selection } from "../hooks/useSelection";
import css from "./DataTable.module.css";
import { Check } from "./Field";
import { GroupRow } from "./GroupRow";
import { useVisibleRows } from "./visibleRows";

export interface Column<T> {
  key: string;
  head: ReactNode;
  cell: (row: T) => ReactNode;
  // Right-aligned with figures of one width.
  isNumber?: boolean;
  // In pixels, or as CSS. Columns without one share the rest.
  width?: number | string;
  sort?: "ascending" | "descending";
  // Left out where there is no room for every column.
  isExtra?: boolean;
}

export interface Group<T> {
  key: string;
  // Cells of the row above the group, by column; one reaches over the columns after it that have none.
  head: Record<string, ReactNode>;
  rows: readonly T[];
}

interface Props<T> {
  // What the table holds, for screen readers.
  caption: string;
  columns: readonly Column<T>[];
  rows?: readonly T[];
  groups?: readonly Group<T>[];
  rowKey: (row: T) => string;
  // Where Enter and a click on the row lead.
  href?: (row: T) => string;
  selection?: Selection<T>;
  // Marks the row that a panel beside the table shows.
  isOn?: (row: T) => boolean;
  rowHeight?: 28 | 30 | 44;
  // Two lines instead of the columns, on a phone.
  phone?: (row: T) => ReactNode;
  // A row above the first one, such as "38 new".
  before?: ReactNode;
  // Cells of a row above the first one, by column, as those of a group.
  lead?: Record<string, ReactNode>;
}

// A table with a sticky head and rows of one height. j and k move, x selects, Enter opens.
export function DataTable<T>(given: Props<T>) {
  const isTight = useIsTight();
  const columns = isTight ? given.columns.filter((column) => !column.isExtra) : given.columns;
  const props = { ...given, columns };
  const { caption, rowKey, href, selection, rowHeight = 28, phone } = props;
  const groups = props.groups ?? [{ key: "", head: {}, rows: props.rows ?? [] }];
  const rows = groups.flatMap((group) => group.rows);
  const isPhone = useIsPhone() && phone !== undefined;
  const body = useRef<HTMLTableSectionElement>(null);
  const focused = useRowKeys({ rows, rowKey, href, selection });
  const isFlat = props.groups === undefined;
  const { first, last, above, below } = useVisibleRows(body, isFlat && !isPhone ? rows.length : 0, rowHeight);
  useEffect(() => {
    if (focused !== null)
      document.querySelector(`[data-row="${CSS.escape(focused)}"]`)?.scrollIntoView({ block: "nearest" });
  }, [focused]);
  if (isPhone) return <PhoneList {...props} groups={groups} focused={focused} />;
  const span = columns.length + (selection === undefined ? 0 : 1);
  const shown = (group: Group<T>) => (isFlat ? group.rows.slice(first, last) : group.rows);
  return (
    <div className={css.scroll}>
      <table
        className={css.table}
        style={{ "--row": `${rowHeight}px` } as React.CSSProperties}
        aria-rowcount={rows.length}
      >
        <caption className="unseen">{caption}</caption>
        <colgroup>
          {selection !== undefined && <col style={{ width: 36 }} />}
          {columns.map((column) => (
            <col key={column.key} style={{ width: column.width }} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {selection !== undefined && (
              <th>
                <Check
                  isBare
                  label="Select all rows"
                  isOn={selection.isAll(rows)}
                  isHalf={selection.count > 0 && !selection.isAll(rows)}
                  onChange={(isOn) => (isOn ? selection.setAll(rows) : selection.clear())}
                />
              </th>
            )}
            {columns.map((column) => (
              <th key={column.key} scope="col" className={column.isNumber ? "num" : ""} aria-sort={column.sort}>
                {column.head}
                {column.sort !== undefined && (
                  <span aria-hidden="true"> {column.sort === "descending" ? "↓" : "↑"}</span>
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {props.before !== undefined && (
            <tr className={css.before}>
              <td colSpan={span}>{props.before}</td>
            </tr>
          )}
          {props.lead !== undefined && <GroupRow columns={columns} head={props.lead} />}
          {above > 0 && <Space tall={above} span={span} />}
          {groups.map((group) => [
            isFlat ? null : <GroupRow key={`group ${group.key}`} columns={columns} head={group.head} />,
            ...shown(group).map((row) => (
              <Row key={rowKey(row)} {...props} row={row} isFocused={rowKey(row) === focused} />
            )),
          ])}
          {below > 0 && <Space tall={below} span={span} />}
        </tbody>
      </table>
    </div>
  );
}

function Row<T>({ columns, row, rowKey, selection, isOn, isFocused }: Props<T> & { row: T; isFocused: boolean }) {
  const key = rowKey(row);
  const isSelected = selection?.has(row) ?? false;
  const isShown = isOn?.(row) ?? false;
  const marks = [isSelected || isShown ? css.on : "", isShown ? css.shown : "", isFocused ? css.focused : ""].join(" ");
  return (
    <tr className={marks} data-row={key} aria-selected={selection === undefined ? undefined : isSelected}>
      {selection !== undefined && (
        <td>
          <Check
            isBare
            label="Select the row"
            isOn={isSelected}
            onChange={(_, isRange) => selection.toggle(row, isRange)}
          />
        </td>
      )}
      {columns.map((column) => (
        <td key={column.key} className={column.isNumber ? "num" : ""}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  );
}

function Space({ tall, span }: { tall: number; span: number }) {
  return (
    <tr>
      <td colSpan={span} style={{ height: tall, padding: 0, border: 0 }} />
    </tr>
  );
}

function PhoneList<T>({
  groups = [],
  rowKey,
  phone,
  isOn,
  before,
  columns,
  focused,
}: Props<T> & { focused: string | null }) {
  return (
    <ul className={css.list}>
      {before !== undefined && <li>{before}</li>}
      {groups.map((group) => [
        group.key === "" ? null : (
          <li key={`group ${group.key}`} className={css.listHead}>
            {columns.map((column) => group.head[column.key] && <span key={column.key}>{group.head[column.key]}</span>)}
          </li>
        ),
        ...group.rows.map((row) => (
          <li key={rowKey(row)} data-row={rowKey(row)} className={isOn?.(row) || rowKey(row) === focused ? css.on : ""}>
            {phone?.(row)}
          </li>
        )),
      ])}
    </ul>
  );
}
