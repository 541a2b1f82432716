import { Page } from "../app/Page";
import { RangePicker } from "../components/RangePicker";
import { Loaded } from "../components/States";
import { useApi } from "../hooks/useApi";
import { Body } from "./overview/Body";
import { useFirstSteps } from "./overview/useFirstSteps";

// What needs attention now, how the system does, and what comes next.
export default function Overview() {
  const overview = useApi("/overview", {}, { live: ["pulse", "changes"], everyMs: 2000, repeatMs: 15_000 });
  const isNew = useFirstSteps(overview.data);
  const verdict = isNew ? "Nothing has run here yet" : overview.data?.text;
  return (
    <Page title="Overview" context={<RangePicker />} verdict={verdict}>
      <Loaded what="The overview" query={overview} rows={6}>
        {(data) => <Body overview={data} isNew={isNew} />}
      </Loaded>
    </Page>
  );
}
