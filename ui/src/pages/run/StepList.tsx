import { Bar } from "../../components/Bar";
import { StateIcon } from "../../components/StateIcon";
import { useNow } from "../../hooks/useNow";
import type { Step } from "./model";
import css from "./StepList.module.css";
import { stripOf } from "./strip";
import { detailOf, stateWord, statusOf, titleOf } from "./words";

interface Props {
  steps: readonly Step[];
  // The step that holds the run up comes first.
  holder: Step | null;
  selected: string | null;
  onSelect: (step: string) => void;
}

// The graph on a phone.
export function StepList({ steps, holder, selected, onSelect }: Props) {
  const now = useNow();
  const ordered = holder === null ? steps : [holder, ...steps.filter((step) => step !== holder)];
  return (
    <ol className={css.steps}>
      {ordered.map((step) => (
        <li key={step.step}>
          <button
            type="button"
            className={`${css.step} ${step.step === selected ? css.on : ""}`}
            aria-pressed={step.step === selected}
            onClick={() => onSelect(step.step)}
          >
            <StateIcon status={statusOf(step)} />
            <span className="unseen">{stateWord(step)}</span>
            <span className="gr col" style={{ gap: 0 }}>
              <b className="el">{titleOf(step)}</b>
              <span className="sm d2 el">{detailOf(step, now)}</span>
            </span>
            {step.map !== null && <Bar parts={stripOf(step)} label="items by state" width={72} />}
          </button>
        </li>
      ))}
    </ol>
  );
}
