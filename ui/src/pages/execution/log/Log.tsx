import { useMemo, useRef, useState } from "react";
import { Button } from "../../../components/Button";
import { Panel } from "../../../components/Panel";
import { Segmented } from "../../../components/Segmented";
import { Empty, Failed, Loading } from "../../../components/States";
import { useKeys } from "../../../hooks/useKeys";
import { useUrlState } from "../../../hooks/useUrlState";
import { count, plural } from "../../../lib/format";
import { hasEnded } from "../../../lib/states";
import type { Attempt, Execution } from "../attempt";
import css from "./Log.module.css";
import { type LogHandle, LogLines } from "./LogLines";
import { leftOut, rowsOf } from "./lines";
import { download } from "./read";
import { Search } from "./Search";
import { useLog } from "./useLog";

interface Props {
  execution: Execution;
  attempts: readonly Attempt[];
  chosen: Attempt | undefined;
}

const STREAMS = ["stdout", "stderr", "log", "rota"];

export function Log({ execution, attempts, chosen }: Props) {
  const id = execution.executionId;
  const url = useUrlState();
  const log = useLog(id, !hasEnded(execution.status));
  const [text, setText] = useState("");
  const lines = useRef<LogHandle>(null);
  const stream = STREAMS.find((one) => one === url.one("stream")) ?? null;
  const isOne = url.one("lines") === "one" && chosen !== undefined;
  const isWrapped = url.one("wrap") === "yes";
  const fence = isOne ? chosen.fence : null;
  const rows = useMemo(() => rowsOf(log.lines, { fence, stream }), [log.lines, fence, stream]);
  const shown = rows.reduce((sum, row) => sum + (row.kind === "line" ? 1 : 0), 0);
  useKeys({
    l: { does: "go to the log", run: () => lines.current?.focus() },
    f: { does: "follow the log, or stop", run: () => lines.current?.toggleFollow() },
  });
  const gap = useMemo(() => leftOut(log.lines), [log.lines]);
  const set = (values: Record<string, string | null>) => url.set(values, { replace: true });
  const bar = (
    <span className={css.bar}>
      <Search rows={rows} text={text} onText={setText} onShow={(row) => lines.current?.show(row)} />
      {attempts.length > 1 && chosen !== undefined && (
        <Segmented
          label="Attempts"
          value={isOne ? "one" : "all"}
          options={[
            { value: "one", label: `Attempt ${chosen.number}` },
            { value: "all", label: `All ${attempts.length}` },
          ]}
          onChange={(value) => set({ lines: value === "one" ? "one" : null })}
        />
      )}
      <Segmented
        label="Streams"
        value={stream ?? "all"}
        options={[{ value: "all", label: "All" }, ...STREAMS.slice(0, 3).map((value) => ({ value, label: value }))]}
        onChange={(value) => set({ stream: value === "all" ? null : value })}
      />
      <Button
        isSmall
        kind={isWrapped ? "primary" : "plain"}
        aria-pressed={isWrapped}
        onClick={() => set({ wrap: isWrapped ? null : "yes" })}
      >
        Wrap
      </Button>
      <Button
        isSmall
        kind="quiet"
        icon="download"
        aria-label="Download the log as text"
        onClick={() => void download(id)}
      />
    </span>
  );
  return (
    <Panel
      title="Log"
      note={
        log.isLoaded
          ? plural(shown, "line") +
            (log.isComplete ? "" : ", earlier ones are being read") +
            (gap === null ? "" : `, ${count(gap.count)} left out after line ${count(gap.after)}`)
          : ""
      }
      right={bar}
      isFlush
    >
      {log.problem !== null ? (
        <Failed what="The log" problem={log.problem} onRetry={log.retry} />
      ) : !log.isLoaded ? (
        <Loading />
      ) : rows.length === 0 ? (
        <Empty
          title={
            log.lines.length === 0 ? "It has written nothing" : `None of its ${count(log.lines.length)} lines matches`
          }
        />
      ) : (
        <LogLines
          ref={lines}
          rows={rows}
          attempts={attempts}
          fence={url.one("attempt") === null ? null : (chosen?.fence ?? null)}
          isWrapped={isWrapped}
          isLive={!hasEnded(execution.status)}
          search={text}
        />
      )}
    </Panel>
  );
}
