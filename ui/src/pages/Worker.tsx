import { Page } from "../app/Page";
import type { PageProps } from "../app/routes";
import { Loaded } from "../components/States";
import { useApi } from "../hooks/useApi";
import { Beats } from "./worker/Beats";
import { Did } from "./worker/Did";
import { Head } from "./worker/Head";
import { Holds } from "./worker/Holds";
import { verdictOf } from "./worker/verdict";
import { WorkerFacts } from "./worker/WorkerFacts";
import { DrainButton } from "./workers/DrainButton";

const UP = { label: "Workers", href: "/workers" };

// One worker process: what it holds, what it did, and how it is.
export default function Worker({ params }: PageProps) {
  const given = params.worker ?? "";
  const worker = useApi(
    "/workers/{worker}",
    { path: { worker: given } },
    { live: ["pulse", "changes"], everyMs: 2000 },
  );
  return (
    <Page
      title={worker.data?.name ?? given}
      up={UP}
      verdict={worker.data && verdictOf(worker.data)}
      phoneActions={worker.data && <DrainButton worker={worker.data} isSmall={false} />}
    >
      <Loaded what={`Worker ${given}`} query={worker}>
        {(found) => (
          <div className="stack">
            <Head worker={found} />
            <div className="detail">
              <div className="stack">
                <Holds worker={found} />
                <Did worker={found} />
              </div>
              <div className="stack">
                <Beats worker={found} />
                <WorkerFacts worker={found} />
              </div>
            </div>
          </div>
        )}
      </Loaded>
    </Page>
  );
}
