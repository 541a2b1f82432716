import { CopyCommand } from "../../components/CopyCommand";

interface Props {
  app: string;
  // The number of the earlier deploy; null if it is not known.
  deploy: string | number | null;
}

// What a rollback does and the commands for it, in the same words on every page.
export function RollBackDeploy({ app, deploy }: Props) {
  return (
    <div className="col" style={{ gap: 4, width: "100%" }}>
      <span className="sm d2">
        Roll back: {deploy === null ? "an earlier deploy" : `deploy ${deploy}`} of app {app} comes into force with all
        its jobs, queues and schedules, at once or as soon as a worker of that code starts.
        {deploy === null && " The first command lists the deploys."}
      </span>
      {deploy === null && <CopyCommand command={`rota deploys --app ${app}`} />}
      <CopyCommand command={`rota deploys use ${app} ${deploy ?? "NUMBER"}`} />
    </div>
  );
}

// The number in `rota deploys use APP NUMBER`; null for another command.
export function deployOf(command: string | null): string | null {
  return /^rota deploys use \S+ (\d+)$/.exec(command ?? "")?.[1] ?? null;
}
