import { Time } from "../../components/Time";
import { useForecast } from "./useForecast";
import type { RunRow } from "./useSteady";

export function ExpectedEnd({ run }: { run: RunRow }) {
  const forecast = useForecast(run);
  if (!forecast?.endsAt) return <span className="d3 not-phone">—</span>;
  return (
    <span className="d2">
      about <Time at={forecast.endsAt} />
    </span>
  );
}
