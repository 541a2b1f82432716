import { Page } from "../app/Page";
import type { PageProps } from "../app/routes";
import { ButtonLink } from "../components/Button";
import { Empty, Loaded } from "../components/States";
import { Tabs } from "../components/Tabs";
import { useApi } from "../hooks/useApi";
import { useIsPhone } from "../hooks/useMedia";
import { useUrlState } from "../hooks/useUrlState";
import { ChangesTab } from "./job/ChangesTab";
import { Definition } from "./job/Definition";
import { DependsOn } from "./job/DependsOn";
import { ExecutionsTab } from "./job/ExecutionsTab";
import { History } from "./job/History";
import { JobActions } from "./job/JobActions";
import { JobHead, verdictOf } from "./job/JobHead";
import { ScheduleTab } from "./job/ScheduleTab";
import type { Job } from "./job/useRuns";

const UP = { label: "Jobs", href: "/jobs" };
const TABS = [
  { value: "history", label: "History", component: History },
  { value: "executions", label: "Executions", component: ExecutionsTab },
  { value: "schedule", label: "Schedule", component: ScheduleTab },
  { value: "depends", label: "Depends on", component: DependsOn },
  { value: "definition", label: "Definition", component: Definition },
  { value: "changes", label: "Changes", component: ChangesTab },
] as const;

export default function JobPage({ params }: PageProps) {
  const name = decodeURIComponent(params.job ?? "");
  const app = decodeURIComponent(params.app ?? "");
  const found = useApi(
    "/jobs/{job}",
    { path: { job: name }, query: { app } },
    { live: ["pulse", "changes"], everyMs: 2000, keep: false },
  );
  const job = found.data as Job | undefined;
  const isPhone = useIsPhone();
  const isUnknown = job === undefined && found.error?.status === 404;
  return (
    <Page
      title={<span title={name}>{name}</span>}
      up={UP}
      verdict={job ? verdictOf(job) : isUnknown ? `No job ${name}` : undefined}
      phoneActions={job && isPhone ? <JobActions job={job} /> : undefined}
    >
      {isUnknown ? (
        <Empty title={`App ${app} has no job ${name}`} actions={<ButtonLink href="/jobs">All jobs</ButtonLink>}>
          <span>A job is here once a worker or the API has registered it.</span>
        </Empty>
      ) : (
        <Loaded what={`The job ${name}`} query={{ ...found, data: job }}>
          {(loaded) => <Shown key={loaded.jobId} job={loaded} />}
        </Loaded>
      )}
    </Page>
  );
}

function Shown({ job }: { job: Job }) {
  const url = useUrlState();
  const tab = TABS.find((one) => one.value === url.one("tab")) ?? TABS[0];
  const Content = tab.component;
  return (
    <div className="stack">
      <JobHead job={job} />
      <Tabs
        label="About the job"
        value={tab.value}
        tabs={TABS.map(({ value, label }) => ({
          value,
          label,
          href: url.href({ tab: value === "history" ? null : value, cursor: null, version: null, against: null }),
        }))}
      />
      <Content job={job} />
    </div>
  );
}
