import { Link } from "wouter";
import { Sparkline } from "../../components/Sparkline";
import { MarkChip } from "../../components/StateChip";
import { known } from "../findings/series";
import { type Outlook, stateOf, waitsInWords } from "./words";

// Cells of a queue that the overview and the list share.

export function QueueName({ queue }: { queue: Outlook }) {
  return (
    <Link href={`/queues/${encodeURIComponent(queue.name)}`} className="ln" title={queue.name}>
      {queue.name}
    </Link>
  );
}

export function QueueState({ queue }: { queue: Outlook }) {
  const { word, ...mark } = stateOf(queue);
  return (
    <span title={queue.lacks ?? waitsInWords(queue) ?? undefined}>
      <MarkChip {...mark}>{word}</MarkChip>
    </span>
  );
}

export function Depth({ queue, width = 72 }: { queue: Outlook; width?: number }) {
  if (queue.series == null) return null;
  return <Sparkline points={known(queue.series.points)} label="length in the last hour" width={width} height={18} />;
}
