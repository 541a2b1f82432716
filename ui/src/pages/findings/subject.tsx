import type { ReactNode } from "react";
import { Link } from "wouter";
import type { Subject } from "./types";

// The page about a subject; null if it has none.
export function addressOf(subject: Subject): string | null {
  const id = encodeURIComponent(subject.id);
  switch (subject.kind) {
    case "job":
      return `/jobs/${encodeURIComponent(subject.app ?? "")}/${encodeURIComponent(subject.name)}`;
    case "schedule":
      return `/schedules?of=${encodeURIComponent(subject.name)}`;
    case "queue":
      return `/queues/${id}`;
    case "execution":
      return `/executions/${id}`;
    case "worker":
      return `/workers/${id}`;
    case "run":
      return `/runs/${id}`;
    default:
      return null;
  }
}

// A sentence in which the name of its subject is a link.
export function withLink(text: string, subject: Subject): ReactNode {
  const address = addressOf(subject);
  const at = text.indexOf(subject.name);
  if (address === null || at < 0 || subject.name === "") return text;
  return (
    <>
      {text.slice(0, at)}
      <Link href={address} className="ln">
        {subject.name}
      </Link>
      {text.slice(at + subject.name.length)}
    </>
  );
}
