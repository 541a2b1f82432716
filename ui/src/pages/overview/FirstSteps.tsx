import { CopyCommand } from "../../components/CopyCommand";
import { Panel } from "../../components/Panel";
import { Verdict } from "../../components/Verdict";
import css from "./FirstSteps.module.css";

const CODE = `from rota import App

app = App("shop")

@app.job
def send(to: str) -> str:
    return f"sent to {to}"`;

// For the first-time user: what this is, and the way to the first execution.
export function FirstSteps() {
  return (
    <div className="stack">
      <Verdict
        text="Nothing has run here yet"
        support="No job is known, and no worker is at work. Three steps to the first execution:"
      />
      <Panel>
        <ol className={css.steps}>
          <li>
            <b>Write a job</b>
            <span className="d2">A job is a function. Save this as shop.py:</span>
            <pre className={css.code}>{CODE}</pre>
          </li>
          <li>
            <b>Start a worker</b>
            <span className="d2">
              In the same folder, with the database of this server. The worker registers the job, and appears under
              Workers.
            </span>
            <CopyCommand command="rota worker shop:app" />
          </li>
          <li>
            <b>Ask for an execution</b>
            <span className="d2">In another terminal. This page shows it as soon as it runs.</span>
            <CopyCommand command="rota enqueue send to=a@example.org --wait" />
          </li>
        </ol>
      </Panel>
    </div>
  );
}
