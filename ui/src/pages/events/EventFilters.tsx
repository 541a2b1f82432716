import { FilterTokens } from "../../components/FilterTokens";
import { useUrlState } from "../../hooks/useUrlState";

const FILTERS = [{ name: "name" }, { name: "subject" }];

export function EventFilters() {
  const url = useUrlState();
  return (
    <FilterTokens
      filters={FILTERS}
      values={{ name: url.all("name"), subject: url.all("subject") }}
      onChange={(name, values) => url.set({ [name]: values.slice(-1), cursor: null })}
    />
  );
}
