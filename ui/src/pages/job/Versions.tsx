import { useState } from "react";
import { change } from "../../api/client";
import type { Difference, JobVersion } from "../../api/schema";
import { useMay } from "../../api/session";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { ChoiceField } from "../../components/Field";
import { Panel } from "../../components/Panel";
import { Time } from "../../components/Time";
import { useAction } from "../../hooks/useAction";
import { useApi } from "../../hooks/useApi";
import { useNow } from "../../hooks/useNow";
import { useUrlState } from "../../hooks/useUrlState";
import { count, duration, percent } from "../../lib/format";
import { deployOf, RollBackDeploy } from "../findings/RollBackDeploy";
import { quantile, successOf } from "../jobs/words";
import { Diff } from "./Diff";
import css from "./Job.module.css";
import { type Job, type RunOfJob, tookOf } from "./useRuns";

interface Props {
  job: Job;
  versions: readonly JobVersion[];
  runs: readonly RunOfJob[];
}

// The versions of the definition, how their runs went, and what one changed against another.
export function Versions({ job, versions, runs }: Props) {
  const url = useUrlState();
  const chosen = Number(url.one("version") ?? job.version);
  const others = versions.filter((one) => one.version !== chosen);
  const against = Number(url.one("against") ?? (others.find((one) => one.version < chosen) ?? others[0])?.version ?? 0);
  return (
    <Panel title="Versions" note="numbers of the runs shown" isFlush>
      <div className={`d3 ${css.versionHeads}`}>
        <span>version</span>
        <span>registered</span>
        <span className="num">runs</span>
        <span className="num">succeeded</span>
        <span className="num">median</span>
      </div>
      <ul className={css.versions}>
        {versions.map((one) => (
          <Row
            key={one.version}
            version={one}
            runs={runs.filter((run) => run.version === one.version)}
            isOn={one.version === chosen}
            onChoose={() => url.set({ version: String(one.version), against: null }, { replace: true })}
          />
        ))}
      </ul>
      {against > 0 && (
        <>
          <div className={css.against}>
            <b>What {chosen} changed</b>
            <ChoiceField
              label="against"
              value={String(against)}
              options={others.map((one) => ({ value: String(one.version), label: `version ${one.version}` }))}
              onChange={(value) => url.set({ version: String(chosen), against: value }, { replace: true })}
            />
            <RollBack job={job} version={chosen === job.version ? against : chosen} />
          </div>
          <Changes job={job} version={chosen} against={against} />
        </>
      )}
    </Panel>
  );
}

interface RowProps {
  version: JobVersion;
  runs: readonly RunOfJob[];
  isOn: boolean;
  onChoose: () => void;
}

function Row({ version, runs, isOn, onChoose }: RowProps) {
  const now = useNow();
  const share = successOf(runs);
  const middle = quantile(
    runs.filter((run) => run.status === "success").flatMap((run) => tookOf(run, now) ?? []),
    0.5,
  );
  return (
    <li className={isOn ? css.on : ""}>
      <button type="button" aria-pressed={isOn} onClick={onChoose}>
        <b className={css.number}>{version.version}</b>
        <span className="gr d2 el">
          <Time at={version.createdAt} /> {version.createdBy !== null && `by ${version.createdBy}`}
          {version.isCurrent && " · in force"}
        </span>
        <span className="num d2">{count(runs.length)}</span>
        <span className="num d2">{share === null ? "—" : percent(share)}</span>
        <span className="num">{middle === null ? "—" : duration(middle)}</span>
      </button>
    </li>
  );
}

function Changes({ job, version, against }: { job: Job; version: number; against: number }) {
  const path = { job: job.jobId, version: String(version) };
  const found = useApi("/jobs/{job}/versions/{version}", { path, query: { diff: against } });
  const differences = (Array.isArray(found.data) ? found.data : []) as readonly Difference[];
  if (found.data === undefined) return null;
  if (differences.length === 0)
    return <p className={`d3 sm ${css.same}`}>The definitions are the same; the code may differ.</p>;
  return <Diff of={differences} />;
}

// The way back that the finding about this job has, else the commands that find one.
function OfCode({ job }: { job: Job }) {
  const findings = useApi("/findings", {}, { live: ["changes"], everyMs: 5000 });
  if (findings.data === undefined) return null;
  const own = findings.data.items.filter(({ subject }) => subject.name === job.name && subject.app === job.app);
  const deploy = own
    .flatMap(({ actions }) => actions.map(({ command }) => deployOf(command)))
    .find((one) => one !== null);
  return <RollBackDeploy app={job.app} deploy={deploy ?? null} />;
}

function RollBack({ job, version }: { job: Job; version: number }) {
  const may = useMay();
  const [isAsking, setAsking] = useState(false);
  const roll = useAction(
    () => change("post", "/jobs/{job}/rollback", { path: { job: job.jobId }, body: { version } }),
    {
      done: () => `${job.name} has the definition of version ${version} again, as a new version.`,
      failed: "Not rolled back",
    },
  );
  if (!may("define") || version === job.version) return null;
  if (job.origin === "code") return <OfCode job={job} />;
  return (
    <>
      <Button isSmall onClick={() => setAsking(true)}>
        Roll back to {version}…
      </Button>
      {isAsking && (
        <Confirm
          title={`Roll ${job.name} back to version ${version}?`}
          keep={`Keep version ${job.version}`}
          act={`Roll back to ${version}`}
          isBusy={roll.isBusy}
          problem={roll.problem}
          onKeep={() => setAsking(false)}
          onAct={() => void roll.run().then((done) => done !== undefined && setAsking(false))}
        >
          New executions take the definition of version {version}. Executions that were accepted before keep theirs.
        </Confirm>
      )}
    </>
  );
}
