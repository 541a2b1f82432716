import { type Right, useMay } from "../../api/session";
import { CopyCommand } from "../../components/CopyCommand";
import { Icon } from "../../components/Icon";
import { Age } from "../../components/Time";
import { Evidence } from "../findings/Evidence";
import { FindingActions } from "../findings/FindingActions";
import { FindingShape } from "../findings/FindingShape";
import { SeverityIcon } from "../findings/SeverityIcon";
import { withLink } from "../findings/subject";
import type { Finding } from "../findings/types";
import css from "./FindingCard.module.css";
import { KINDS, UNKNOWN } from "./kinds";

const ALL = 9;

interface Props {
  finding: Finding;
  isGone: boolean;
}

// A finding with what it means and its remedy: buttons, or the commands for those who may not press them.
export function FindingCard({ finding, isGone }: Props) {
  const { means, remedy } = KINDS[finding.kind] ?? UNKNOWN;
  return (
    <li className={`${css.card} ${isGone ? css.gone : ""}`} data-finding={finding.findingId}>
      <span className={css.icon}>
        {isGone ? <Icon name="tick" size={16} className="c-success" /> : <SeverityIcon severity={finding.severity} />}
      </span>
      <div className={css.what}>
        <b className={css.text}>{withLink(finding.text, finding.subject)}</b>
        <p className={`sm d2 ${css.text}`}>
          <Evidence finding={finding} />
        </p>
        <p className="sm">
          {finding.means ?? means}{" "}
          <span className="d2">{finding.advice === null ? remedy : adviceOf(finding.advice)}</span>
        </p>
        {!isGone && <Commands finding={finding} />}
      </div>
      <span className={`num sm d2 ${css.since}`}>
        {isGone
          ? "settled"
          : finding.since !== null && (
              <>
                for <Age since={finding.since} />
              </>
            )}
      </span>
      <span className={css.shape}>{!isGone && <FindingShape finding={finding} />}</span>
      <span className={css.actions}>{!isGone && <FindingActions finding={finding} most={ALL} />}</span>
    </li>
  );
}

// As a sentence: "Roll back with …". The commands in it are marked for a terminal.
function adviceOf(advice: string): string {
  return `${advice.charAt(0).toUpperCase()}${advice.slice(1).replaceAll("`", "")}.`;
}

// The commands of what the viewer may not do here.
function Commands({ finding }: { finding: Finding }) {
  const may = useMay();
  const commands = finding.actions.filter((action) => !may(action.needs as Right) && action.command !== null);
  if (commands.length === 0) return null;
  return (
    <div className="col" style={{ paddingTop: 4 }}>
      <span className="sm d3">Operators can do this:</span>
      {commands.map((action) => (
        <CopyCommand key={action.label} command={action.command ?? ""} />
      ))}
    </div>
  );
}
