import { Icon } from "../../components/Icon";
import { useUrlState } from "../../hooks/useUrlState";
import { count } from "../../lib/format";
import type { Finding } from "../findings/types";
import css from "./MoreFindings.module.css";

interface Props {
  hidden: readonly Finding[];
  count: number;
  canFold: boolean;
}

// "3 more: sync_stock, nightly_backup", and the way back.
export function MoreFindings({ hidden, count: number, canFold }: Props) {
  const url = useUrlState();
  if (number <= 0 && !canFold) return null;
  const names = [...new Set(hidden.map((finding) => finding.subject.name))].join(", ");
  return (
    <button
      type="button"
      className={css.more}
      aria-expanded={canFold}
      onClick={() => url.set({ all: canFold ? null : "1" }, { replace: true })}
    >
      <span className="gr el">{canFold ? "Show the worst only" : `${count(number)} more: ${names}`}</span>
      <Icon name={canFold ? "up" : "down"} />
    </button>
  );
}
