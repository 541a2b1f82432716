import { Icon } from "../../components/Icon";
import { Age } from "../../components/Time";
import { useIsTight } from "../../hooks/useMedia";
import { Evidence } from "./Evidence";
import { FindingActions } from "./FindingActions";
import css from "./FindingList.module.css";
import { FindingShape } from "./FindingShape";
import { SeverityIcon } from "./SeverityIcon";
import { withLink } from "./subject";
import type { Finding } from "./types";

interface Props {
  rows: readonly { key: string; item: Finding; isGone: boolean }[];
}

// One row for each finding: what, evidence, for how long, its shape, and what to do.
export function FindingList({ rows }: Props) {
  const isTight = useIsTight();
  return (
    <ul className={css.list}>
      {rows.map(({ key, item, isGone }) => (
        <li key={key} className={`${css.finding} ${isGone ? css.gone : ""}`} data-finding={key}>
          <span className={css.icon}>
            {isGone ? <Icon name="tick" size={16} className="c-success" /> : <SeverityIcon severity={item.severity} />}
          </span>
          <div className={css.what}>
            <div className={css.text} title={item.text}>
              <b>{withLink(item.text, item.subject)}</b>
            </div>
            <div className={`sm d2 ${css.evidence}`} title={item.evidence}>
              <Evidence finding={item} />
            </div>
          </div>
          <span className={`num sm d2 ${css.since}`}>
            {isGone
              ? "settled"
              : item.since !== null && (
                  <>
                    for <Age since={item.since} />
                  </>
                )}
          </span>
          <span className={css.shape}>{!isGone && <FindingShape finding={item} />}</span>
          <span className={css.actions}>{!isGone && <FindingActions finding={item} most={isTight ? 2 : 3} />}</span>
        </li>
      ))}
    </ul>
  );
}
