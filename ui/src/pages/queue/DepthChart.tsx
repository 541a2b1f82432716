import { LazyChart } from "../../components/LazyChart";
import { Panel } from "../../components/Panel";
import { Loaded } from "../../components/States";
import { useApi } from "../../hooks/useApi";
import { serverNow } from "../../hooks/useNow";
import { boundsOf, rangeWords, useTimeRange } from "../../hooks/useTimeRange";
import { count, shortCount } from "../../lib/format";
import { stepOf } from "../overview/step";

type Point = number | null;

// How long the queue was, with dashed lines where it was paused, resumed or set.
export function DepthChart({ name }: { name: string }) {
  const { since, until } = useTimeRange();
  const [begin, end] = boundsOf(since, until, serverNow());
  const range = { from: since, to: until ?? undefined };
  const step = String(stepOf(begin, end, serverNow()));
  const stats = useApi(
    "/stats",
    { query: { ...range, metrics: ["queued"], by: ["queue"], queue: [name], step } },
    { live: ["pulse"], everyMs: 5000 },
  );
  const changes = useApi("/changes", { query: { ...range, limit: 200 } }, { live: ["changes"], everyMs: 2000 });
  const own = (changes.data?.items ?? []).filter(({ subject }) => subject.kind === "queue" && subject.name === name);
  return (
    <Panel title="Length" note={rangeWords(since)}>
      <Loaded what="The statistics" query={stats}>
        {({ series }) => {
          const points = series[0]?.points ?? [];
          const values = points.map(([, value]): Point => (typeof value === "number" ? value : null));
          const known = values.filter((value) => value !== null);
          if (known.length === 0)
            return <p className="d2">No sample yet: the length is sampled once a minute while a worker is at work.</p>;
          return (
            <LazyChart
              times={points.map(([at]) => Date.parse(String(at)) / 1000)}
              lines={[{ label: "queued", values, colour: "ink-2", kind: "area" }]}
              sentence={`Length of queue ${name}: ${count(known.at(-1) ?? 0)} at last, at most ${count(Math.max(...known))}.`}
              format={(value) => shortCount(Math.round(value))}
              height={140}
              marks={own.map((change) => Date.parse(change.at) / 1000)}
            />
          );
        }}
      </Loaded>
    </Panel>
  );
}
