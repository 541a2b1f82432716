import { useState } from "react";
import { change } from "../../api/client";
import type { Item } from "../../api/types";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { useAction } from "../../hooks/useAction";
import type { Secret } from "./Tokens";

const OVERLAP = "1h";

// A new secret for the same token. The old one holds for an hour, so that its callers can be changed over.
export function RotateToken({ token, onMade }: { token: Item<"/tokens">; onMade: (made: Secret) => void }) {
  const [isAsking, setAsking] = useState(false);
  const rotate = useAction(
    () => change("post", "/tokens/{token}/rotate", { path: { token: token.tokenId }, body: { overlap: OVERLAP } }),
    { failed: "Not rotated" },
  );
  const act = async () => {
    const made = await rotate.run();
    if (made === undefined) return;
    setAsking(false);
    onMade({ name: made.name, secret: made.secret });
  };
  return (
    <>
      <Button isSmall onClick={() => setAsking(true)}>
        Rotate…
      </Button>
      {isAsking && (
        <Confirm
          title={`Rotate token ${token.name}?`}
          keep="Keep the secret"
          act="Make a new secret"
          isBusy={rotate.isBusy}
          problem={rotate.problem}
          onKeep={() => setAsking(false)}
          onAct={() => void act()}
        >
          A new secret is shown once. The old one still holds for one hour.
        </Confirm>
      )}
    </>
  );
}
