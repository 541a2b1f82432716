import { useMay } from "../api/session";
import { Page } from "../app/Page";
import type { PageProps } from "../app/routes";
import { Tabs } from "../components/Tabs";
import { Appearance } from "./settings/Appearance";
import { Audit } from "./settings/Audit";
import { Namespaces } from "./settings/Namespaces";
import { Tokens } from "./settings/Tokens";

const SECTIONS = [
  { value: "appearance", label: "Appearance", needs: "read", part: Appearance },
  { value: "tokens", label: "Tokens", needs: "admin", part: Tokens },
  { value: "namespaces", label: "Namespaces", needs: "admin", part: Namespaces },
  { value: "audit", label: "Audit", needs: "admin", part: Audit },
] as const;

export default function Settings({ params }: PageProps) {
  const may = useMay();
  const shown = SECTIONS.filter((section) => section.needs === "read" || may(section.needs));
  const chosen = shown.find((section) => section.value === params.section) ?? SECTIONS[0];
  const Part = chosen.part;
  return (
    <Page title="Settings">
      <Part
        tabs={
          <Tabs
            label="Sections"
            value={chosen.value}
            tabs={shown.map(({ value, label }) => ({ value, label, href: `/settings/${value}` }))}
          />
        }
      />
    </Page>
  );
}
