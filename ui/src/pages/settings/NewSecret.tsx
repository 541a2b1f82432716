import { Button } from "../../components/Button";
import { CopyCommand } from "../../components/CopyCommand";
import { Dialog } from "../../components/Dialog";
import type { Secret } from "./Tokens";

// The only time that the secret is shown: the database has its hash.
export function NewSecret({ made, onClose }: { made: Secret; onClose: () => void }) {
  return (
    <Dialog
      title={`Token ${made.name}`}
      onClose={onClose}
      foot={
        <Button kind="primary" onClick={onClose}>
          I have copied it
        </Button>
      }
    >
      <div className="col">
        {made.secret === null ? (
          <p className="d2">
            The token was made by an earlier request, which showed its secret. Rotate it for a new one.
          </p>
        ) : (
          <>
            <p className="d2">This is shown once. Keep it as you would keep a password.</p>
            <CopyCommand command={made.secret} />
          </>
        )}
      </div>
    </Dialog>
  );
}
