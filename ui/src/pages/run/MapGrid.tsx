import { Button } from "../../components/Button";
import { StateIcon } from "../../components/StateIcon";
import { useUrlState } from "../../hooks/useUrlState";
import { count } from "../../lib/format";
import { markOf } from "../../lib/states";
import type { Run, Step } from "./model";
import css from "./Run.module.css";
import { type MapItem, MOST_CELLS, useItems, worstItem } from "./useItems";

interface Props {
  run: Run;
  step: Step;
  chosen: number | null;
  onChoose: (item: MapItem) => void;
}

// A cell for each item, with its state as an icon. Of many items, those of one state, page by page.
export function MapGrid({ run, step, chosen, onChoose }: Props) {
  const url = useUrlState();
  const width = step.map?.width ?? 0;
  const isMany = width > MOST_CELLS;
  const status = url.one("of");
  const { items, next, previous } = useItems(run, step, { status, cursor: isMany ? url.one("page") : null });
  const on = chosen ?? worstItem(items)?.index ?? null;
  return (
    <div className="col">
      {isMany && <p className="sm d3">{count(width)} items: choose a state, or turn the pages.</p>}
      <fieldset className={css.grid} aria-label={`Items of ${step.step}`}>
        {items.map((item) => {
          const { word, colour } = markOf(item.status);
          const label = `[${item.index}] ${word}${item.attemptCount > 1 ? `, attempt ${item.attemptCount}` : ""}`;
          return (
            <button
              key={item.executionId}
              type="button"
              className={`${css.cell} ${item.index === on ? css.on : ""}`}
              style={{ background: `var(--t-${colour})` }}
              title={label}
              aria-label={label}
              aria-pressed={item.index === on}
              onClick={() => onChoose(item)}
            >
              <StateIcon status={item.status} />
            </button>
          );
        })}
      </fieldset>
      <Counts
        step={step}
        chosen={status}
        onChoose={(of) => url.set({ of, page: null, item: null }, { replace: true })}
      />
      {isMany && (
        <div className="row">
          <Button isSmall icon="left" disabled={previous === null} onClick={() => url.set({ page: previous })}>
            Before
          </Button>
          <Button isSmall icon="right" disabled={next === null} onClick={() => url.set({ page: next })}>
            After
          </Button>
        </div>
      )}
    </div>
  );
}

interface CountsProps {
  step: Step;
  chosen: string | null;
  onChoose: (status: string | null) => void;
}

// How many there are in each state; pressing one shows only those.
function Counts({ step, chosen, onChoose }: CountsProps) {
  const map = step.map;
  if (map === null) return null;
  const waiting = map.open - map.running;
  const numbers: [string, number][] = [
    ["success", map.success],
    ["running", map.running],
    ["failed", map.failed],
    ["cancelled", map.cancelled],
    ["skipped", map.skipped],
  ];
  return (
    <div className="row wrap sm d2">
      {numbers
        .filter(([, number]) => number > 0)
        .map(([status, number]) => (
          <button
            key={status}
            type="button"
            className={`${css.count} ${chosen === status ? css.on : ""}`}
            aria-pressed={chosen === status}
            onClick={() => onChoose(chosen === status ? null : status)}
          >
            <StateIcon status={status} />
            {count(number)} <span className="unseen">{markOf(status).word}</span>
          </button>
        ))}
      {waiting > 0 && (
        <span className="row" style={{ gap: 4 }}>
          <StateIcon status="queued" />
          {count(waiting)} <span className="unseen">waiting to run</span>
        </span>
      )}
      {map.kept > 0 && <span>{count(map.kept)} kept</span>}
      {map.atOnce !== null && <span className="d3">at most {map.atOnce} at once</span>}
    </div>
  );
}
