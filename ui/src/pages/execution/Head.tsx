import type { ReactNode } from "react";
import { CopyButton } from "../../components/CopyButton";
import { Tag } from "../../components/Facts";
import { Id } from "../../components/Id";
import { Callout } from "../../components/Panel";
import { StateChip } from "../../components/StateChip";
import { Duration } from "../../components/Time";
import { hasEnded, markOf } from "../../lib/states";
import type { Execution } from "./attempt";
import css from "./Head.module.css";

interface Props {
  execution: Execution;
  isDead: boolean;
  actions: ReactNode;
  children: ReactNode;
}

// State, name and verdict of the execution, with what can be done.
export function Head({ execution, isDead, actions, children }: Props) {
  const { colour } = markOf(execution.status);
  return (
    <Callout colour={colour}>
      <div className={css.head}>
        <div className={css.name}>
          <StateChip status={execution.status} isHead />
          <span className={css.job} title={execution.job}>
            {execution.job}
          </span>
          <span className="row nw" style={{ gap: 8 }}>
            <Id id={execution.executionId} />
            <CopyButton text={execution.executionId} label="Copy the id" />
          </span>
          {isDead && <Tag>dead letter</Tag>}
          {!hasEnded(execution.status) && execution.status !== "running" && (
            <span className="sm d2 nw">
              for <Duration from={execution.createdAt} />
            </span>
          )}
        </div>
        <div className={`${css.actions} not-phone`}>{actions}</div>
      </div>
      <p className={css.verdict}>{children}</p>
    </Callout>
  );
}
