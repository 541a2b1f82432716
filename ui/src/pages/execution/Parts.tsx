import type { Answer } from "../../api/types";
import { Json } from "../../components/Json";
import { Panel } from "../../components/Panel";
import { useIsPhone } from "../../hooks/useMedia";
import { hasEnded } from "../../lib/states";
import { Attempts } from "./Attempts";
import type { Attempt, Execution } from "./attempt";
import { ExecutionFacts, policyWords } from "./ExecutionFacts";
import { Ladder } from "./Ladder";
import { Like } from "./Like";
import { Lineage } from "./Lineage";
import { Log } from "./log/Log";
import { PlaceInLine, StartDeadline } from "./PlaceInLine";
import { Progress } from "./Progress";
import { Traceback } from "./Traceback";

interface Props {
  execution: Execution;
  attempts: readonly Attempt[];
  chosen: Attempt | undefined;
  onChoose: (fence: number) => void;
  job: Answer<"/jobs/{job}"> | undefined;
  forecast: Answer<"/executions/{execution}/forecast"> | undefined;
}

// Evidence on the left, facts on the right. What comes first depends on the state: the ladder of what does not run, the
// log of what runs, the result of what ended well, the attempts and the error of what failed.
export function Parts({ execution, attempts, chosen, onChoose, job, forecast }: Props) {
  const isPhone = useIsPhone();
  const { status } = execution;
  const isWaiting = !hasEnded(status) && status !== "running";
  const hasLog = attempts.length > 0;
  const like = status === "failed" ? <Like id={execution.executionId} /> : null;
  const log = hasLog ? <Log execution={execution} attempts={attempts} chosen={chosen} /> : null;
  const error = chosen?.error ?? null;
  const tries =
    attempts.length > 0 ? (
      <Attempts
        execution={execution}
        attempts={attempts}
        chosen={chosen?.fence ?? null}
        onChoose={onChoose}
        policy={policyWords(execution, job)}
      />
    ) : null;
  return (
    <div className="detail">
      <div className="stack">
        {isPhone && like}
        {isWaiting && <Ladder execution={execution} />}
        {status === "success" && <Result execution={execution} />}
        {status === "running" && log}
        {tries}
        {error !== null && <Traceback title={`Error of attempt ${chosen?.number}`} error={error} />}
        {status !== "running" && log}
      </div>
      <div className="stack">
        {isWaiting && <StartDeadline execution={execution} />}
        {isWaiting && forecast !== undefined && <PlaceInLine execution={execution} forecast={forecast} />}
        {status === "running" && <Progress execution={execution} attempt={attempts.at(-1)} forecast={forecast} />}
        {!isPhone && like}
        <Panel title="Arguments">
          <Json value={execution.arguments ?? {}} label="the arguments" />
        </Panel>
        <Lineage execution={execution} />
        <ExecutionFacts
          execution={execution}
          job={job}
          started={attempts.filter((one) => one.startedAt !== null).length}
        />
      </div>
    </div>
  );
}

function Result({ execution }: { execution: Execution }) {
  return (
    <Panel title="Result">
      {execution.result === null || execution.result === undefined ? (
        <p className="d2">The job returned nothing.</p>
      ) : (
        <Json value={execution.result} label="the result" />
      )}
    </Panel>
  );
}
