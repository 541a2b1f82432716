import { useQueryClient } from "@tanstack/react-query";
import { useMay } from "../../api/session";
import { Bar } from "../../components/Bar";
import { Button } from "../../components/Button";
import { Callout } from "../../components/Panel";
import { useApi } from "../../hooks/useApi";
import { count } from "../../lib/format";
import { useSignal } from "../../lib/signal";
import { followed, hasEnded, stopAction, totalOf } from "../executions/bulk/send";
import { type Verb, WORDS } from "../executions/bulk/verbs";
import css from "./Dead.module.css";

// Actions that are under way and were begun elsewhere, or before the page was loaded again. Those of this tab have a toast.
export function Underway() {
  const may = useMay();
  const client = useQueryClient();
  const own = useSignal(followed);
  const found = useApi("/actions", { query: { limit: 20 } }, { live: ["pulse", "changes"], everyMs: 1000 });
  const open = (found.data?.items ?? []).filter(
    (action) => action.on === "executions" && !hasEnded(action) && !own.includes(action.actionId),
  );
  const stop = (id: string) => void stopAction(id).then(() => client.invalidateQueries());
  return open.map((action) => (
    <Callout key={action.actionId} colour="running">
      <div className={css.progress}>
        <span>
          <b>{WORDS[action.action as Verb]?.done ?? action.action}</b> {count(action.done)} of {count(totalOf(action))}
          <span className="d2">
            {action.rate === null ? "" : `, ${action.rate} per second`}, begun by {action.actor}
          </span>
        </span>
        <span className="gr">
          <Bar
            parts={[{ share: (action.done + action.failed) / Math.max(1, totalOf(action)), colour: "running" }]}
            label={`${action.done} of ${totalOf(action)}`}
            width="100%"
          />
        </span>
        {may("operate") && (
          <Button isSmall onClick={() => stop(action.actionId)}>
            Stop
          </Button>
        )}
      </div>
    </Callout>
  ));
}
