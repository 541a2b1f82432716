import { useLocation } from "wouter";
import { ButtonLink } from "../../components/Button";
import { Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { useKeys } from "../../hooks/useKeys";
import type { Run } from "./model";

// The runs of the same workflow before and after this one.
export function Around({ run }: { run: Run }) {
  const [, go] = useLocation();
  const others = useApi("/runs", {
    query: { workflow: run.workflow, app: run.app, limit: 200, fields: "runId,createdAt" },
  });
  const ids = (others.data?.items ?? []).map((one) => one.runId ?? "");
  const at = ids.indexOf(run.runId);
  const older = at < 0 ? undefined : ids[at + 1];
  const newer = at < 0 ? undefined : ids[at - 1];
  useKeys({
    ...(newer === undefined ? {} : { "[": { does: "newer run", run: () => go(`/runs/${newer}`) } }),
    ...(older === undefined ? {} : { "]": { does: "older run", run: () => go(`/runs/${older}`) } }),
  });
  return (
    <span className="row not-phone" style={{ gap: 4 }}>
      <span className="sm d3 nw">
        Run of <Time at={run.createdAt} />
      </span>
      {older !== undefined && (
        <ButtonLink isSmall icon="left" href={`/runs/${older}`}>
          <span className="unseen">Older run</span>
        </ButtonLink>
      )}
      {newer !== undefined && (
        <ButtonLink isSmall icon="right" href={`/runs/${newer}`}>
          <span className="unseen">Newer run</span>
        </ButtonLink>
      )}
    </span>
  );
}
