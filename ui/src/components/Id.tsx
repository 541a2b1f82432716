import { Link } from "wouter";
import { shortId } from "../lib/format";
import { CopyButton } from "./CopyButton";

interface Props {
  id: string;
  hasCopy?: boolean;
  // All 36 characters, on a page of facts.
  isWhole?: boolean;
  // The page about it.
  href?: string;
}

export function Id({ id, hasCopy = false, isWhole = false, href }: Props) {
  const shown = isWhole ? id : shortId(id);
  return (
    <span className={`mono d2 ${isWhole ? "" : "nw"}`} title={id}>
      {href === undefined ? (
        shown
      ) : (
        <Link href={href} className="ln">
          {shown}
        </Link>
      )}
      {hasCopy && <CopyButton text={id} label="Copy the id" />}
    </span>
  );
}
