import { useState } from "react";
import { Button } from "../../components/Button";
import { CopyCommand } from "../../components/CopyCommand";
import { Dialog } from "../../components/Dialog";
import { deployOf, RollBackDeploy } from "./RollBackDeploy";

interface Props {
  label: string;
  command: string;
  isSmall?: boolean;
}

// What the command does, where that is not plain from its label.
function Body({ command }: { command: string }) {
  const deploy = deployOf(command);
  if (deploy !== null) return <RollBackDeploy app={command.split(" ")[3] ?? ""} deploy={deploy} />;
  return (
    <>
      <p className="d2">Run this where the code of the app is, with the same database:</p>
      <CopyCommand command={command} />
    </>
  );
}

// What can only be done in a terminal: the command to copy.
export function CommandButton({ label, command, isSmall = true }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button isSmall={isSmall} onClick={() => setOpen(true)}>
        {label}…
      </Button>
      {isOpen && (
        <Dialog
          title={label}
          onClose={() => setOpen(false)}
          foot={
            <Button kind="primary" onClick={() => setOpen(false)}>
              Close
            </Button>
          }
        >
          <Body command={command} />
        </Dialog>
      )}
    </>
  );
}
