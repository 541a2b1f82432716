import { Icon } from "../../components/Icon";
import { Time } from "../../components/Time";
import { plural } from "../../lib/format";
import type { Checked } from "./draft";
import css from "./Schedules.module.css";

// What the dry run says: in words, the next ten ticks, warnings, and which workers would take them.
export function Preview({ checked: { preview, problem } }: { checked: Checked }) {
  if (problem !== null) {
    const isShown = problem.flaws.some((flaw) => flaw.pointer);
    return (
      <p className="sm d2" role="status">
        {isShown ? "Not valid yet: see the field above." : `It would be refused: ${problem.message}.`}
      </p>
    );
  }
  if (preview === null)
    return (
      <p className="sm d2" role="status">
        Give a job and when it fires: the next ten ticks appear here.
      </p>
    );
  return (
    <div className="col" role="status">
      <p>
        Fires <b>{preview.words}</b>, in queue {preview.queue}.{" "}
        <span className="d2">
          {preview.reason ?? `${plural(preview.workers.length, "live worker")} would take its executions.`}
        </span>
      </p>
      <ol className={`sm ${css.next}`} aria-label="Next ticks">
        {preview.nextTicks.map((at) => (
          <li key={at}>
            <Time at={at} />
          </li>
        ))}
      </ol>
      {preview.warnings.map((warning) => (
        <p key={warning.text} className="sm row">
          <Icon name="triangle" className="c-warn" />
          <span>{warning.text}</span>
        </p>
      ))}
    </div>
  );
}
