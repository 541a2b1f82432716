import { useState } from "react";
import { Dialog } from "../components/Dialog";
import { Kbd } from "../components/Facts";
import css from "./KeyList.module.css";
import { listed } from "./keys";

export function KeyList({ onClose }: { onClose: () => void }) {
  // The list is of the page below; a dialog has keys of its own.
  const [keys] = useState(listed);
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className={css.keys}>
        {keys.map(({ keys: combination, does }) => (
          <div key={combination}>
            <dt>
              {shown(combination).map((key) => (
                <Kbd key={key}>{key}</Kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

// "g o" are two keys one after the other; "Ctrl+k" is written as beside the search field.
function shown(combination: string): string[] {
  return combination === "Ctrl+k" ? ["Ctrl K"] : combination.split(" ");
}
