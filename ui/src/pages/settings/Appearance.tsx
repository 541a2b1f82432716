import { useMe } from "../../api/session";
import { Facts } from "../../components/Facts";
import { Panel } from "../../components/Panel";
import { Segmented } from "../../components/Segmented";
import { useZone } from "../../hooks/useZone";
import { useSignal } from "../../lib/signal";
import { THEMES, theme } from "../../lib/theme";
import { zone } from "../../lib/zone";
import { Section, type SectionProps } from "./Section";

const SHOWN = { system: "the theme of the system", light: "the light theme", dark: "the dark theme" };
const WORDS = { system: "As the system", light: "Light", dark: "Dark" };

// Kept in this browser.
export function Appearance({ tabs }: SectionProps) {
  const chosen = useSignal(theme);
  const { zone: shown, label } = useZone();
  const { data: me } = useMe();
  return (
    <Section
      tabs={tabs}
      verdict={`This browser shows ${SHOWN[chosen]}, and times in ${shown === "UTC" ? "UTC" : label}`}
      support="Both are kept in this browser. Times in forms are of the same zone."
    >
      <Panel title="Appearance">
        <Facts
          of={{
            theme: (
              <Segmented
                label="Theme"
                value={chosen}
                options={THEMES.map((value) => ({ value, label: WORDS[value] }))}
                onChange={theme.set}
              />
            ),
            "time zone": (
              <Segmented
                label="Time zone"
                value={shown}
                options={[
                  { value: "local", label: shown === "local" ? `This computer (${label})` : "This computer" },
                  { value: "UTC", label: "UTC" },
                ]}
                onChange={zone.set}
              />
            ),
          }}
        />
      </Panel>
      {me !== undefined && (
        <Panel title="You and this server">
          <Facts
            of={{
              caller: me.actor,
              role: me.role,
              "may do": me.scopes.join(", "),
              namespaces: me.namespaces.includes("*") ? "all" : me.namespaces.join(", "),
              server: `Rota ${me.serverVersion}`,
              database: me.database,
            }}
          />
        </Panel>
      )}
    </Section>
  );
}
