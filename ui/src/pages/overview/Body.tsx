import type { Answer } from "../../api/types";
import { Verdict } from "../../components/Verdict";
import { useIsPhone } from "../../hooks/useMedia";
import { useUrlState } from "../../hooks/useUrlState";
import { Attention } from "./Attention";
import css from "./Body.module.css";
import { Charts } from "./Charts";
import { FirstSteps } from "./FirstSteps";
import { NextHour } from "./NextHour";
import { QueueSummary } from "./QueueSummary";
import { numbersInWords } from "./words";

const MOST_FINDINGS = 7;
const MOST_ON_PHONE = 3;
// With five findings six queues fit on a screen of 900 px, and SPARE is left. A finding has 44 px, a queue 28.
const USUAL_FINDINGS = 5;
const MOST_QUEUES = 6;
const LEAST_QUEUES = 3;
const SPARE = 56;

interface Props {
  overview: Answer<"/overview">;
  isNew: boolean;
}

export function Body({ overview, isNew }: Props) {
  const isPhone = useIsPhone();
  const hasAll = useUrlState().one("all") !== null;
  if (isNew) return <FirstSteps />;
  const most = isPhone ? MOST_ON_PHONE : MOST_FINDINGS;
  const shown = hasAll ? overview.findings.length : Math.min(most, overview.findings.length);
  const rows = hasAll ? MOST_QUEUES : roomFor(shown, overview.findingCount > shown);
  return (
    <div className="stack">
      <Verdict text={overview.text} support={numbersInWords(overview.numbers, isPhone)} />
      <Attention overview={overview} most={most} />
      <Charts numbers={overview.numbers} />
      <div className={css.foot}>
        <QueueSummary most={rows} />
        <NextHour most={rows - 1} />
      </div>
    </div>
  );
}

function roomFor(findings: number, hasMore: boolean): number {
  const over = Math.max(0, findings - USUAL_FINDINGS) * 44 + (hasMore ? 30 : 0) - SPARE;
  return Math.max(LEAST_QUEUES, MOST_QUEUES - Math.max(0, Math.ceil(over / 28)));
}
