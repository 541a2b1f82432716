import { useState } from "react";
import type { Answer } from "../../api/types";
import { Button } from "../../components/Button";
import { Dialog } from "../../components/Dialog";
import { Loaded } from "../../components/States";
import { useApi } from "../../hooks/useApi";
import css from "./Compare.module.css";

interface Props {
  app: string;
  job: string;
  from: number;
  to: number;
}

interface Difference {
  path: string;
  before?: unknown;
  after?: unknown;
}

// "Compare 13 with 14": what the definition of a job has in one version and not in the other.
export function Compare({ app, job, from, to }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" className={`ln ${css.open}`} onClick={() => setOpen(true)}>
        Compare {from} with {to}
      </button>
      {isOpen && <Differences app={app} job={job} from={from} to={to} onClose={() => setOpen(false)} />}
    </>
  );
}

function Differences({ app, job, from, to, onClose }: Props & { onClose: () => void }) {
  const found = useApi(
    "/jobs/{job}/versions/{version}",
    { path: { job, version: String(to) }, query: { app, diff: from } },
    { keep: false },
  );
  return (
    <Dialog
      title={`${job}: version ${from} and version ${to}`}
      isWide
      onClose={onClose}
      foot={
        <Button kind="primary" onClick={onClose}>
          Close
        </Button>
      }
    >
      <Loaded what="The versions" query={found}>
        {(data: Answer<"/jobs/{job}/versions/{version}">) => <List differences={Array.isArray(data) ? data : []} />}
      </Loaded>
    </Dialog>
  );
}

function List({ differences }: { differences: readonly Difference[] }) {
  if (differences.length === 0)
    return <p className="d2">The definitions are the same; the code of the job may differ all the same.</p>;
  return (
    <table className={css.table}>
      <thead>
        <tr>
          <th>member</th>
          <th>before</th>
          <th>after</th>
        </tr>
      </thead>
      <tbody>
        {differences.map((one) => (
          <tr key={one.path}>
            <td className="mono">{one.path}</td>
            <td className="mono d2">{JSON.stringify(one.before ?? null)}</td>
            <td className="mono">{JSON.stringify(one.after ?? null)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
