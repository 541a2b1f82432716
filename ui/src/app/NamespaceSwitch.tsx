import { useQueryClient } from "@tanstack/react-query";
import { namespace } from "../api/client";
import { useMay, useMe } from "../api/session";
import { Icon } from "../components/Icon";
import { MoreMenu } from "../components/MoreMenu";
import { useApi } from "../hooks/useApi";
import css from "./NamespaceSwitch.module.css";

const ALL = "*";

// The namespace of the page. A token of several, or of all, may choose.
export function NamespaceSwitch() {
  const client = useQueryClient();
  const { data: me } = useMe();
  const may = useMay();
  const hasAll = me?.namespaces.includes(ALL) ?? false;
  const known = useApi("/namespaces", {}, { enabled: hasAll && may("admin") });
  if (me === undefined) return null;
  const names = hasAll ? (known.data?.items.map((one) => one.name) ?? []) : me.namespaces;
  const choose = (name: string) => {
    namespace.set(name);
    client.clear();
  };
  if (names.length < 2) {
    return (
      <div className={css.box} title={`Namespace ${me.namespace}`}>
        <b className="el gr">{me.namespace}</b>
      </div>
    );
  }
  const entries = names.map((name) => ({ label: name, isOn: name === me.namespace, run: () => choose(name) }));
  return (
    <div className={css.box}>
      <MoreMenu label={`Namespace ${me.namespace}: choose another`} entries={entries}>
        <b className="el gr">{me.namespace}</b>
        <Icon name="down" />
      </MoreMenu>
    </div>
  );
}
