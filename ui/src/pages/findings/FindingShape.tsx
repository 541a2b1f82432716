import { Bar } from "../../components/Bar";
import { Bars } from "../../components/Bars";
import { Sparkline } from "../../components/Sparkline";
import { known, summed } from "./series";
import type { Finding } from "./types";

const WIDTH = 92;
const BARS = 15;

// The shape of a finding over the last hour, or how far beyond the usual it is. The numbers are in its text.
export function FindingShape({ finding }: { finding: Finding }) {
  const { series, measure, usual, unit } = finding;
  if (series?.metric === "failed") {
    const stacks = summed(series.points, BARS).map((value, key) => ({ key, parts: [{ value, colour: "failed" }] }));
    return <Bars stacks={stacks} label="failures of the last hour" width={WIDTH} height={18} />;
  }
  if (series?.metric === "progress")
    return (
      <Bar
        parts={[{ share: (series.points.at(-1) ?? 0) / 100, colour: "running" }]}
        label={`${series.points.at(-1) ?? 0} % done`}
        width={WIDTH}
      />
    );
  if (series != null)
    return (
      <Sparkline points={known(series.points)} label={`${series.metric} in the last hour`} width={WIDTH} height={18} />
    );
  if (unit === "seconds" && measure && usual) {
    const share = Math.min(1, usual / measure);
    const parts = [
      { share, colour: "running" },
      { share: 1 - share, colour: "warn" },
    ];
    return <Bar parts={parts} label="the usual time, and the time beyond it" width={WIDTH} />;
  }
  return null;
}
