import { Page } from "../app/Page";
import { CopyCommand } from "../components/CopyCommand";
import { Panel } from "../components/Panel";
import { RangePicker } from "../components/RangePicker";
import { Empty, Loaded } from "../components/States";
import { Verdict } from "../components/Verdict";
import { useApi } from "../hooks/useApi";
import { QueueTable } from "./queues/QueueTable";
import { supportOfAll, verdictOfAll } from "./queues/verdict";

// All queues: what stands still, what grows, and when each will be empty.
export default function Queues() {
  const outlook = useApi("/outlook", {}, { live: ["pulse", "changes"], everyMs: 2000 });
  const queues = outlook.data?.queues ?? [];
  return (
    <Page title="Queues" context={<RangePicker />} verdict={outlook.data && verdictOfAll(queues)}>
      <Loaded what="Queues" query={outlook}>
        {() => (
          <div className="stack">
            <Verdict text={verdictOfAll(queues)} support={supportOfAll(queues)} />
            <Panel isFlush>{queues.length === 0 ? <NoQueues /> : <QueueTable queues={queues} />}</Panel>
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function NoQueues() {
  return (
    <Empty title="Start a worker of your app">
      <span>A queue appears with the first job that uses it, when a worker of its app starts.</span>
      <CopyCommand command="rota worker MODULE:APP" />
    </Empty>
  );
}
