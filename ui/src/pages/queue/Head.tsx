import { useMay } from "../../api/session";
import { CopyCommand } from "../../components/CopyCommand";
import { Callout } from "../../components/Panel";
import { Age } from "../../components/Time";
import { Verdict } from "../../components/Verdict";
import { count, plural, rate } from "../../lib/format";
import { PauseButton } from "../queues/PauseButton";
import { verdictOf } from "../queues/verdict";
import { forecastOf, type Outlook, stateOf, waitsInWords } from "../queues/words";

// The verdict; with a coloured edge if the queue stands still.
export function Head({ queue }: { queue: Outlook }) {
  const { colour, isQuiet } = stateOf(queue);
  const verdict = (
    <Verdict
      text={verdictOf(queue)}
      support={<Support queue={queue} />}
      actions={
        <span className="not-phone">
          <PauseButton
            name={queue.name}
            paused={queue.paused}
            inPerS={queue.inPerS}
            queued={queue.queued}
            isSmall={false}
            hasKey
          />
        </span>
      }
    />
  );
  if (isQuiet) return verdict;
  return (
    <Callout colour={colour}>
      {verdict}
      <MayNot queue={queue} />
    </Callout>
  );
}

function Support({ queue }: { queue: Outlook }) {
  return (
    <>
      {count(queue.queued)} queued
      {queue.oldestAt !== null && (
        <>
          , oldest <Age since={queue.oldestAt} />
        </>
      )}{" "}
      · {queue.queued > 0 && queue.waiting > 0 && `${waitsInWords(queue)} · `}
      {count(queue.running)} running · {slotsInWords(queue)} · {rate(queue.inPerS)} in and {rate(queue.outPerS)} out per
      second{queue.paused !== null && ` · ${forecastOf(queue).toLowerCase()}`}
    </>
  );
}

function slotsInWords({ slots }: Outlook): string {
  return slots === 0
    ? "no worker can run these jobs"
    : `${plural(slots, "slot")} ${slots === 1 ? "serves" : "serve"} it`;
}

// Where the button is absent, the reader learns who can press it, and the command.
function MayNot({ queue }: { queue: Outlook }) {
  const may = useMay();
  if (queue.paused === null || may("operate")) return null;
  return (
    <div className="col" style={{ paddingTop: 8 }}>
      <span className="sm d2">Operators can resume this queue.</span>
      <CopyCommand command={`rota queues resume ${queue.name}`} />
    </div>
  );
}
