import { Link } from "wouter";
import type { Answer } from "../../api/types";
import { Callout, Panel } from "../../components/Panel";
import { Sparkline } from "../../components/Sparkline";
import { Age, Time } from "../../components/Time";
import { useApi } from "../../hooks/useApi";
import { count, duration } from "../../lib/format";
import type { Execution } from "./attempt";
import css from "./PlaceInLine.module.css";

type Forecast = Answer<"/executions/{execution}/forecast">;

// Where it stands in its queue, and when it is expected to start.
export function PlaceInLine({ execution, forecast }: { execution: Execution; forecast: Forecast }) {
  const outlook = useApi("/outlook", {}, { live: ["pulse"], everyMs: 5000 });
  const queue = outlook.data?.queues.find((one) => one.name === execution.queue);
  if (forecast.place === null) return null;
  const points = queue?.series?.points.map((point) => point ?? 0) ?? [];
  return (
    <Panel
      title="Place in line"
      right={
        <Link href={`/queues/${encodeURIComponent(execution.queue)}`} className="sm ln d2">
          Queue {execution.queue}
        </Link>
      }
    >
      <p>
        <span className={css.place}>
          {ordinal(forecast.place)}
          {forecast.placeIsCapped ? " or later" : ""}
        </span>{" "}
        <span className="d2">
          {queue === undefined
            ? ""
            : `of ${count(queue.queued)} queued, ${queue.running === 0 ? "none runs" : `${count(queue.running)} run${queue.running === 1 ? "s" : ""}`}`}
        </span>
      </p>
      {points.length > 1 && (
        <>
          <Sparkline
            points={points}
            width={328}
            height={44}
            label={`queued in ${execution.queue} over the last hour`}
          />
          <div className="row xs d3">
            <span className="gr">
              <Time at={queue?.series?.from} />
            </span>
            now
          </div>
        </>
      )}
      <p className="sm d2">
        <Expected forecast={forecast} />
      </p>
    </Panel>
  );
}

function Expected({ forecast }: { forecast: Forecast }) {
  if (forecast.startsAt !== null)
    return (
      <>
        Expected to start about <Time at={forecast.startsAt} />
        {forecast.endsAt !== null && (
          <>
            {" "}
            and to end about <Time at={forecast.endsAt} />
          </>
        )}
        .
      </>
    );
  const place = forecast.place ?? 1;
  if (forecast.heldBy !== null && forecast.usualS !== null)
    return (
      <>
        With one slot and {duration(forecast.usualS)} for each, it starts about{" "}
        {duration((place - 1) * forecast.usualS)} after what holds it back is gone.
      </>
    );
  if (forecast.heldBy !== null) return <>It starts only after what holds it back is gone.</>;
  return <>When it starts is not known: the job has not ended often enough.</>;
}

// What comes if it does not start in time.
export function StartDeadline({ execution }: { execution: Execution }) {
  if (execution.startBy === null) return null;
  return (
    <Callout colour="retrying">
      <b>
        Skipped at <Time at={execution.startBy} />
      </b>
      <p className="sm d2">
        Start deadline in <Age until={execution.startBy} />. An execution that has not started by then is skipped.
      </p>
    </Callout>
  );
}

function ordinal(place: number): string {
  if (place === 1) return "Next";
  const [tens, ones] = [place % 100, place % 10];
  const end = tens > 10 && tens < 14 ? "th" : ones === 1 ? "st" : ones === 2 ? "nd" : ones === 3 ? "rd" : "th";
  return `${count(place)}${end}`;
}
