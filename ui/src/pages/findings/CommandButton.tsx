import { useState } from "react";
import { Button } from "../../components/Button";
import { CopyCommand } from "../../components/CopyCommand";
import { Dialog } from "../../components/Dialog";

interface Props {
  label: string;
  command: string;
  isSmall?: boolean;
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
          <p className="d2">Run this where the code of the app is, with the same database:</p>
          <CopyCommand command={command} />
        </Dialog>
      )}
    </>
  );
}
