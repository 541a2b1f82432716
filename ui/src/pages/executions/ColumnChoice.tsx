import { MoreMenu } from "../../components/MoreMenu";
import { useSignal } from "../../lib/signal";
import { CHOOSABLE, type Choosable, chosen } from "./columns";

// Which columns are shown; the choice stays in the browser.
export function ColumnChoice() {
  const names = useSignal(chosen).split(",");
  const toggle = (name: Choosable) => {
    const next = names.includes(name) ? names.filter((one) => one !== name) : [...names, name];
    chosen.set(next.filter((one) => one !== "").join(","));
  };
  const entries = CHOOSABLE.map((name) => ({ label: name, isOn: names.includes(name), run: () => toggle(name) }));
  return <MoreMenu label="Choose columns" icon="columns" word="Columns" entries={entries} staysOpen />;
}
