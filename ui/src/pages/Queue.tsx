import { Page } from "../app/Page";
import type { PageProps } from "../app/routes";
import { ButtonLink } from "../components/Button";
import { RangePicker } from "../components/RangePicker";
import { Empty, Loaded } from "../components/States";
import { useApi } from "../hooks/useApi";
import { DepthChart } from "./queue/DepthChart";
import { Forecast } from "./queue/Forecast";
import { Head } from "./queue/Head";
import { Line } from "./queue/Line";
import { QueueFindings } from "./queue/QueueFindings";
import { Settings } from "./queue/Settings";
import { Shares } from "./queue/Shares";
import { PauseButton } from "./queues/PauseButton";
import { verdictOf } from "./queues/verdict";
import type { Outlook } from "./queues/words";

const UP = { label: "Queues", href: "/queues" };

// One queue: the line, who is next, and when it will be empty.
export default function Queue({ params }: PageProps) {
  const name = params.queue ?? "";
  const outlook = useApi("/outlook", {}, { live: ["pulse", "changes"], everyMs: 2000 });
  const queue = outlook.data?.queues.find((one) => one.name === name);
  return (
    <Page
      title={name}
      up={UP}
      context={<RangePicker />}
      verdict={queue && verdictOf(queue)}
      phoneActions={queue && <Pause queue={queue} />}
    >
      <Loaded what={`Queue ${name}`} query={outlook}>
        {() => (queue === undefined ? <Unknown name={name} /> : <Body queue={queue} />)}
      </Loaded>
    </Page>
  );
}

function Pause({ queue }: { queue: Outlook }) {
  return (
    <PauseButton name={queue.name} paused={queue.paused} inPerS={queue.inPerS} queued={queue.queued} isSmall={false} />
  );
}

function Body({ queue }: { queue: Outlook }) {
  return (
    <div className="stack">
      <Head queue={queue} />
      <QueueFindings queue={queue} />
      <div className="detail">
        <div className="stack">
          <DepthChart name={queue.name} />
          <Line queue={queue} />
        </div>
        <div className="stack">
          <Forecast queue={queue} />
          <Shares queue={queue} />
          <Settings name={queue.name} />
        </div>
      </div>
    </div>
  );
}

function Unknown({ name }: { name: string }) {
  return (
    <Empty title={`No queue is named ${name}`} actions={<ButtonLink href="/queues">All queues</ButtonLink>}>
      A queue appears with the first job that uses it.
    </Empty>
  );
}
