import { shortId } from "../lib/format";
import { CopyButton } from "./CopyButton";

interface Props {
  id: string;
  hasCopy?: boolean;
  // All 36 characters, on a page of facts.
  isWhole?: boolean;
}

export function Id({ id, hasCopy = false, isWhole = false }: Props) {
  return (
    <span className={`mono d2 ${isWhole ? "" : "nw"}`} title={id}>
      {isWhole ? id : shortId(id)}
      {hasCopy && <CopyButton text={id} label="Copy the id" />}
    </span>
  );
}
