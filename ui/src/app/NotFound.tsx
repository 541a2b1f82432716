import { ButtonLink } from "../components/Button";
import { Empty } from "../components/States";
import { Page } from "./Page";

export function NotFound() {
  return (
    <Page title="Not found" verdict="Not found">
      <Empty title="There is no page at this address" actions={<ButtonLink href="/">Open the overview</ButtonLink>}>
        <span>It may have been mistyped, or moved.</span>
      </Empty>
    </Page>
  );
}
