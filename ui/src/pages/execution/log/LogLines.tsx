import { type Ref, useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "react";
import { duration, plural, secondsBetween } from "../../../lib/format";
import type { Attempt } from "../attempt";
import { charWidth } from "./charWidth";
import { LineView } from "./LineView";
import css from "./Log.module.css";
import { HEAD, type Row, rowAt, topsOf, widthOf } from "./lines";
import { useSelectedRows, withSelected } from "./useSelectedRows";

export interface LogHandle {
  focus: () => void;
  toggleFollow: () => void;
  show: (row: number) => void;
}

interface Props {
  ref: Ref<LogHandle>;
  rows: readonly Row[];
  attempts: readonly Attempt[];
  // The attempt that the reader looks at.
  fence: number | null;
  isWrapped: boolean;
  isLive: boolean;
  search: string;
}

// Up to so many lines are all in the page, so that the browser's own search finds them.
const ALL = 5_000;
const OVERSCAN = 40;
// Time, stream, gaps and padding beside the text.
const BESIDE = 92 + 50 + 16 + 24;
const NEAR_END = 4;

export function LogLines({ ref, rows, attempts, fence, isWrapped, isLive, search }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, tall: 480, wide: 800 });
  const [isFollowing, setFollowing] = useState(true);
  const [seen, setSeen] = useState(rows.length);
  const [marked, setMarked] = useState<number | null>(null);
  const width = charWidth();
  const across = isWrapped ? Math.max(20, Math.floor((view.wide - BESIDE) / width)) : null;
  const tops = useMemo(() => topsOf(rows, across), [rows, across]);
  const total = tops[rows.length] ?? 0;
  const longest = useMemo(
    () => rows.reduce((most, row) => Math.max(most, row.kind === "line" ? widthOf(row.line.text) : 0), 0),
    [rows],
  );
  const isAll = rows.length <= ALL;
  const selected = useSelectedRows(box, rows);
  const drawn = {
    first: Math.max(0, rowAt(tops, view.top) - OVERSCAN),
    last: Math.min(rows.length, rowAt(tops, view.top + view.tall) + OVERSCAN),
  };
  const { first, last } = isAll ? { first: 0, last: rows.length } : withSelected(drawn, selected);

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = new ResizeObserver(() =>
      setView((old) => ({ ...old, tall: element.clientHeight, wide: element.clientWidth })),
    );
    measure.observe(element);
    return () => measure.disconnect();
  }, []);

  useKeptPlace(box, rows, tops, isFollowing);
  useEffect(() => {
    if (isFollowing) setSeen(rows.length);
  }, [isFollowing, rows.length]);

  const shownFence = useRef(fence);
  useEffect(() => {
    if (shownFence.current === fence) return;
    shownFence.current = fence;
    const head = rows.findIndex((row) => row.kind === "head" && row.fence === fence);
    if (head < 0) return;
    setFollowing(false);
    box.current?.scrollTo({ top: tops[head] ?? 0 });
  }, [fence, rows, tops]);

  const toEnd = () => {
    setFollowing(true);
    box.current?.scrollTo({ top: total });
  };
  useImperativeHandle(ref, () => ({
    focus: () => {
      box.current?.scrollIntoView({ block: "nearest" });
      box.current?.focus();
    },
    toggleFollow: () => (isFollowing ? setFollowing(false) : toEnd()),
    show: (row) => {
      setMarked(row);
      setFollowing(false);
      box.current?.scrollTo({ top: Math.max(0, (tops[row] ?? 0) - view.tall / 2) });
    },
  }));

  const onScroll = () => {
    const element = box.current;
    if (element === null) return;
    const isAtEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - NEAR_END;
    if (isAtEnd !== isFollowing && (isAtEnd || element.scrollTop < view.top)) setFollowing(isAtEnd);
    setView((old) => ({ ...old, top: element.scrollTop }));
  };
  const behind = rows.length - seen;
  return (
    <div className={css.frame}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys and Page Up scroll it. */}
      <section ref={box} className={css.box} aria-label="Lines of the log" tabIndex={0} onScroll={onScroll}>
        <div
          className={`${css.lines} ${isWrapped ? css.wrapped : ""}`}
          style={{ height: total, minWidth: isWrapped ? undefined : Math.ceil(longest * width) + BESIDE }}
        >
          <div style={{ transform: `translateY(${tops[first] ?? 0}px)` }}>
            {rows.slice(first, last).map((row, offset) => {
              const index = first + offset;
              if (row.kind === "head") return <AttemptHead key={row.key} fence={row.fence} attempts={attempts} />;
              const tall = (tops[index + 1] ?? 0) - (tops[index] ?? 0);
              return (
                <LineView
                  key={`${row.line.fence}.${row.line.line}`}
                  line={row.line}
                  index={index}
                  tall={tall}
                  search={search}
                  isMarked={index === marked && search !== ""}
                />
              );
            })}
          </div>
        </div>
      </section>
      {isLive && !isFollowing && (
        <button type="button" className={css.follow} onClick={toEnd}>
          {behind > 0 ? plural(behind, "new line") : "Follow"}
        </button>
      )}
      {isLive && isFollowing && <span className={`xs d3 ${css.following}`}>Following</span>}
    </div>
  );
}

// At the end it stays at the end; elsewhere the line at the top stays where it is, also if lines come before it.
function useKeptPlace(
  box: React.RefObject<HTMLDivElement | null>,
  rows: readonly Row[],
  tops: Float64Array,
  isFollowing: boolean,
): void {
  const before = useRef<{ rows: readonly Row[]; tops: Float64Array }>({ rows: [], tops: new Float64Array(1) });
  useLayoutEffect(() => {
    const element = box.current;
    const old = before.current;
    before.current = { rows, tops };
    if (element === null) return;
    if (isFollowing) {
      element.scrollTop = element.scrollHeight;
      return;
    }
    const at = rowAt(old.tops, element.scrollTop);
    const row = old.rows[at];
    if (row === undefined) return;
    const into = element.scrollTop - (old.tops[at] ?? 0);
    const now = rows[at] === row ? at : placeOf(rows, row);
    if (now >= 0) element.scrollTop = (tops[now] ?? 0) + into;
  }, [box, rows, tops, isFollowing]);
}

function placeOf(rows: readonly Row[], row: Row): number {
  if (row.kind === "head") return rows.findIndex((one) => one.kind === "head" && one.fence === row.fence);
  const { fence, line } = row.line;
  return rows.findIndex((one) => one.kind === "line" && one.line.fence === fence && one.line.line === line);
}

function AttemptHead({ fence, attempts }: { fence: number; attempts: readonly Attempt[] }) {
  const at = attempts.findIndex((attempt) => attempt.fence === fence);
  const attempt = attempts[at];
  const previous = attempts[at - 1];
  const name = attempt === undefined ? `start ${fence}` : `attempt ${attempt.number}`;
  const waited =
    attempt?.startedAt && previous?.completedAt
      ? `Waited ${duration(secondsBetween(previous.completedAt, attempt.startedAt))}, then ${name}`
      : name.charAt(0).toUpperCase() + name.slice(1);
  return (
    <div className={css.head} style={{ height: HEAD }}>
      {waited}
      {attempt?.worker ? ` · ${attempt.worker}` : ""}
    </div>
  );
}
