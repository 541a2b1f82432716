import { useState } from "react";
import { change } from "../../api/client";
import { useMe } from "../../api/session";
import type { Item } from "../../api/types";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { useAction } from "../../hooks/useAction";

export function RevokeToken({ token }: { token: Item<"/tokens"> }) {
  const { data: me } = useMe();
  const [isAsking, setAsking] = useState(false);
  const revoke = useAction(() => change("delete", "/tokens/{token}", { path: { token: token.tokenId } }), {
    done: () => `Token ${token.name} revoked. It ends everywhere within 5 seconds.`,
    failed: "Not revoked",
  });
  const isOwn = me?.actor.replace(/^\w+:/, "") === token.name;
  const act = async () => {
    await revoke.run();
    setAsking(false);
  };
  return (
    <>
      <Button isSmall onClick={() => setAsking(true)}>
        Revoke…
      </Button>
      {isAsking && (
        <Confirm
          title={`Revoke token ${token.name}?`}
          keep="Keep it"
          act="Revoke it"
          isBusy={revoke.isBusy}
          problem={revoke.problem}
          onKeep={() => setAsking(false)}
          onAct={() => void act()}
        >
          Its callers are refused within 5 seconds, and its open streams end.
          {isOwn && <b> You are signed in with it, so this signs you out.</b>}
        </Confirm>
      )}
    </>
  );
}
