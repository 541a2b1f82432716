import { Link } from "wouter";
import { Facts } from "../../components/Facts";
import { Panel } from "../../components/Panel";
import { Age } from "../../components/Time";
import { count, rate } from "../../lib/format";
import { forecastOf, type Outlook, waitsInWords } from "../queues/words";

export function Forecast({ queue }: { queue: Outlook }) {
  return (
    <Panel title="Forecast" note="from the last five minutes">
      <div className="col">
        <b>{forecastOf(queue)}</b>
        <Facts
          of={{
            queued: count(queue.queued),
            waiting: waitsInWords(queue),
            oldest: queue.oldestAt === null ? null : <Age since={queue.oldestAt} />,
            arrive: `${rate(queue.inPerS)} per second`,
            end: `${rate(queue.outPerS)} per second`,
            running: (
              <Link href={`/executions?status=running&queue=${encodeURIComponent(queue.name)}`} className="ln">
                {count(queue.running)}
              </Link>
            ),
            slots: (
              <>
                {count(queue.slots)} of live workers{" "}
                <Link href="/workers" className="ln">
                  Workers
                </Link>
              </>
            ),
          }}
        />
      </div>
    </Panel>
  );
}
