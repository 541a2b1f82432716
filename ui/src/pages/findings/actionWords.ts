import { count, plural } from "../../lib/format";
import type { Finding, FindingAction } from "./types";

export interface Undo {
  label: string;
  path: string;
}

export interface ActionWords {
  title: string;
  text: string;
  keep: string;
  act: string;
  hasNote: boolean;
  done: string;
  failed: string;
  undo: Undo | null;
}

function resumed(kind: string): string {
  return kind === "run" ? "Its next steps start at once." : "What waits starts as slots become free.";
}

// What is asked before an action of a finding, what is said after it, and how it is undone.
export function wordsOf(finding: Finding, action: FindingAction): ActionWords {
  const { kind, name } = finding.subject;
  const path = action.path ?? "";
  const verb = /\/(\w+)(?:\?.*)?$/.exec(path)?.[1] ?? "";
  const thing = kind === "run" ? `the run of ${name}` : `${kind} ${name}`;
  const Thing = thing.charAt(0).toUpperCase() + thing.slice(1);
  const other = (to: string) => path.replace(`/${verb}`, `/${to}`);
  const isPause = finding.kind.endsWith("_paused");
  const waiting = isPause && finding.affected > 0 ? `${count(finding.affected)} queued` : "";
  switch (verb) {
    case "pause":
      return {
        title: `Pause ${thing}?`,
        text:
          kind === "schedule"
            ? "No tick starts until it is resumed, and those of the pause are not made up for. What runs continues to its end."
            : "Executions that run continue to their end; new ones wait until it is resumed.",
        keep: "Keep it running",
        act: `Pause ${kind}`,
        hasNote: true,
        done: `${Thing} paused.`,
        failed: "Not paused",
        undo: { label: "Undo: resume", path: other("resume") },
      };
    case "resume":
      return {
        title: `Resume ${thing}?`,
        text: `${isPause ? `${finding.text}. ` : ""}${waiting === "" ? resumed(kind) : `${waiting}: they start as slots become free.`}`,
        keep: "Keep it paused",
        act: `Resume ${kind}`,
        hasNote: false,
        done: `${Thing} resumed.${kind === "run" || waiting === "" ? "" : ` ${waiting}.`}`,
        failed: "Not resumed",
        undo: { label: "Undo: pause again", path: other("pause") },
      };
    case "cancel":
      return {
        title: "Ask 1 to stop?",
        text: `The request reaches the execution of ${name} within a second; code that does not look may finish.`,
        keep: "Keep running",
        act: "Cancel 1",
        hasNote: false,
        done: `The execution of ${name} is asked to stop.`,
        failed: "Not cancelled",
        undo: null,
      };
    case "drain":
      return {
        title: `Drain ${thing}?`,
        text: "It claims no more executions, exits when those that it holds have ended, and is not replaced.",
        keep: "Keep it at work",
        act: "Drain it",
        hasNote: false,
        done: `${Thing} drains: it claims nothing more, and exits when its executions have ended.`,
        failed: "Not drained",
        undo: null,
      };
    case "close":
      return {
        title: `Close ${thing}?`,
        text: `${plural(finding.affected, "execution")} that wait for it may start at once.`,
        keep: "Keep it open",
        act: "Close breaker",
        hasNote: false,
        done: `${Thing} closed.`,
        failed: "Not closed",
        undo: { label: "Undo: open again", path: other("open") },
      };
    case "approve":
      return {
        title: `Approve “${name}”?`,
        text: "The run continues with the answer yes. An answer is final.",
        keep: "Leave it open",
        act: "Approve",
        hasNote: true,
        done: `Approved: “${name}”.`,
        failed: "Not approved",
        undo: null,
      };
    default: {
      const label = action.label.replace(/…$/, "");
      return {
        title: `${label}: ${name}?`,
        text: "",
        keep: "Leave it as it is",
        act: label,
        hasNote: false,
        done: `${label}: done.`,
        failed: "Not done",
        undo: null,
      };
    }
  }
}
