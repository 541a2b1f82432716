import { Button } from "../../components/Button";
import { Panel } from "../../components/Panel";
import { useIsPhone } from "../../hooks/useMedia";
import { useNow } from "../../hooks/useNow";
import { useUrlState } from "../../hooks/useUrlState";
import { LazyGraph, useFit } from "../graph/LazyGraph";
import type { GraphEdge, GraphNode } from "../graph/types";
import { type Forecast, isReached, isTrouble, type Step } from "./model";
import css from "./Run.module.css";
import { StepList } from "./StepList";
import { stripOf } from "./strip";
import { detailOf, stateWord, statusOf, titleOf } from "./words";

interface Props {
  steps: readonly Step[];
  forecast: Forecast | undefined;
  critical: readonly string[];
  holder: Step | null;
  selected: string | null;
  onSelect: (step: string) => void;
}

const ROW = 76;

export function GraphPanel({ steps, forecast, critical, holder, selected, onSelect }: Props) {
  const url = useUrlState();
  const isPhone = useIsPhone();
  const now = useNow();
  const fit = useFit();
  const isOnly = url.one("only") === "trouble";
  if (isPhone)
    return (
      <Panel title="Steps" isFlush>
        <StepList steps={steps} holder={holder} selected={selected} onSelect={onSelect} />
      </Panel>
    );
  return (
    <Panel
      title="Graph"
      note={
        critical.length > 1 && (
          <span className={`xs ${css.legend}`}>
            <svg width="16" height="8" aria-hidden="true">
              <path d="M0 4h16" stroke="var(--ink)" strokeWidth="2" />
            </svg>
            critical path
          </span>
        )
      }
      isFlush
      right={
        <>
          <Button
            isSmall
            aria-pressed={isOnly}
            kind={isOnly ? "primary" : "plain"}
            onClick={() => url.set({ only: isOnly ? null : "trouble" }, { replace: true })}
          >
            Failed and late only
          </Button>
          {fit.button}
        </>
      }
    >
      <LazyGraph
        label="Steps of the run"
        nodes={steps.map((step) => nodeOf(step, isOnly && !isTrouble(step, forecast), now))}
        edges={edgesOf(steps, critical)}
        selected={selected}
        onSelect={onSelect}
        height={heightOf(steps)}
        fits={fit.fits}
      />
    </Panel>
  );
}

function nodeOf(step: Step, isDimmed: boolean, now: number): GraphNode {
  return {
    id: step.step,
    title: titleOf(step),
    detail: detailOf(step, now),
    status: statusOf(step),
    word: stateWord(step),
    isDashed: !isReached(step) || step.status === "blocked" || step.status === "skipped",
    isDimmed,
    strip: step.map !== null && isReached(step) ? stripOf(step) : undefined,
  };
}

function edgesOf(steps: readonly Step[], critical: readonly string[]): GraphEdge[] {
  const pairs = new Set(critical.slice(1).map((name, index) => `${critical[index]}\n${name}`));
  return steps.flatMap((step) =>
    step.upstream.map((from) => ({ from, to: step.step, isCritical: pairs.has(`${from}\n${step.step}`) })),
  );
}

// As many rows as the widest rank has, within bounds.
function heightOf(steps: readonly Step[]): number {
  const ranks = new Map<string, number>();
  for (const step of steps)
    ranks.set(step.step, Math.max(0, ...step.upstream.map((name) => (ranks.get(name) ?? 0) + 1)));
  const sizes = new Map<number, number>();
  for (const rank of ranks.values()) sizes.set(rank, (sizes.get(rank) ?? 0) + 1);
  return Math.min(520, Math.max(284, Math.max(0, ...sizes.values()) * ROW));
}
