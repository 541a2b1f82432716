import type { Answer } from "../../api/types";
import { Bar } from "../../components/Bar";
import { Bytes } from "../../components/Count";
import { Facts } from "../../components/Facts";
import { Panel } from "../../components/Panel";
import { Duration, Time } from "../../components/Time";
import { count } from "../../lib/format";
import type { Attempt, Execution } from "./attempt";

interface Props {
  execution: Execution;
  attempt: Attempt | undefined;
  forecast: Answer<"/executions/{execution}/forecast"> | undefined;
}

// How far a running execution is, compared with how long it usually takes.
export function Progress({ execution, attempt, forecast }: Props) {
  const detail = execution.progressDetail;
  const share = execution.progress === null ? null : execution.progress / 100;
  return (
    <Panel title="Progress" note={detail?.note ?? undefined}>
      <div className="col">
        {share === null ? (
          <p className="sm d2">The job reports no progress.</p>
        ) : (
          <div className="row">
            <Bar parts={[{ share, colour: "running" }]} label={`${execution.progress} % done`} width="100%" />
            <b className="nw">{execution.progress} %</b>
          </div>
        )}
        <Facts
          of={{
            done:
              detail?.done == null
                ? null
                : `${count(detail.done)}${detail.total == null ? "" : ` of ${count(detail.total)}`}`,
            "reported at": detail == null ? null : <Time at={detail.at} />,
            "runs for": <Duration from={execution.startedAt} />,
            usually: forecast?.usualS == null ? null : <Duration seconds={forecast.usualS} />,
            "ends about": forecast?.endsAt == null ? null : <Time at={forecast.endsAt} />,
            heartbeat: execution.lastHeartbeat === null ? null : <Time at={execution.lastHeartbeat} />,
            cpu: attempt?.usage == null ? null : <Duration seconds={attempt.usage.cpu} />,
            "peak memory": attempt?.usage == null ? null : <Bytes value={attempt.usage.peakBytes} />,
          }}
        />
      </div>
    </Panel>
  );
}
