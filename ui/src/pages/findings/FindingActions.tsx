import { type Right, useMay } from "../../api/session";
import { ButtonLink } from "../../components/Button";
import { CommandButton } from "./CommandButton";
import { DoButton } from "./DoButton";
import type { Finding, FindingAction } from "./types";

interface Props {
  finding: Finding;
  // Two on the overview: where to look, and what to do.
  most?: number;
  isSmall?: boolean;
}

// The buttons of a finding, as the server names them. What the viewer may not do is absent.
export function FindingActions({ finding, most = 2, isSmall = true }: Props) {
  const may = useMay();
  const allowed = finding.actions.filter((action) => may(action.needs as Right));
  return (
    <>
      {chosen(allowed, most).map((action) => (
        <ActionButton key={action.label} finding={finding} action={action} isSmall={isSmall} />
      ))}
    </>
  );
}

// One to open and one to do before a second of a kind; in the order of the server.
function chosen(actions: readonly FindingAction[], most: number): readonly FindingAction[] {
  if (actions.length <= most) return actions;
  const first = [actions.find((one) => one.kind === "open"), actions.find((one) => one.kind !== "open")];
  const wanted = [...new Set([...first.filter((one) => one !== undefined), ...actions])].slice(0, most);
  return actions.filter((one) => wanted.includes(one));
}

function ActionButton({ finding, action, isSmall }: { finding: Finding; action: FindingAction; isSmall: boolean }) {
  if (action.kind === "do") return <DoButton finding={finding} action={action} isSmall={isSmall} />;
  if (action.link !== null)
    return (
      <ButtonLink isSmall={isSmall} href={action.link}>
        {action.label}
      </ButtonLink>
    );
  if (action.command === null) return null;
  return <CommandButton label={action.label} command={action.command} isSmall={isSmall} />;
}
