import { CopyButton } from "../../components/CopyButton";
import { Icon } from "../../components/Icon";
import { Panel } from "../../components/Panel";
import { Segmented } from "../../components/Segmented";
import { useUrlState } from "../../hooks/useUrlState";
import { plural } from "../../lib/format";
import type { ErrorText } from "./attempt";
import { type Frame, type Part, partsOf, type Section, sectionsOf, shortFile } from "./frames";
import css from "./Traceback.module.css";

type View = "own" | "all" | "raw";

// Class and message first; own frames open, those of libraries folded by package.
export function Traceback({ title, error }: { title: string; error: ErrorText }) {
  const url = useUrlState();
  const sections = sectionsOf(error.traceback, error.source);
  const total = sections.reduce((sum, section) => sum + section.frames.length, 0);
  const asked = url.one("frames");
  const view: View = asked === "all" || asked === "raw" ? asked : "own";
  const raw = error.traceback === "" ? `${error.type}: ${error.message}` : error.traceback;
  const options = [
    { value: "own" as View, label: "Own code" },
    { value: "all" as View, label: total === 1 ? "1 frame" : `All ${total} frames` },
    { value: "raw" as View, label: "Raw" },
  ];
  return (
    <Panel
      title={title}
      isFlush
      right={
        <>
          <CopyButton text={raw} label="Copy the error as text" word="Copy" />
          {total > 0 && (
            <Segmented
              label="Frames"
              value={view}
              options={options}
              onChange={(next) => url.set({ frames: next === "own" ? null : next }, { replace: true })}
            />
          )}
        </>
      }
    >
      {view === "raw" ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the arrow keys scroll what is too long.
        <pre className={css.raw} tabIndex={0}>
          {raw}
        </pre>
      ) : (
        <>
          <div className={css.error}>
            <div className={css.type}>{error.type}</div>
            <div className="mono">{error.message}</div>
          </div>
          {sections.map((section, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a traceback does not change.
            <SectionView key={index} section={section} isAll={view === "all"} isLast={index === sections.length - 1} />
          ))}
        </>
      )}
    </Panel>
  );
}

function SectionView({ section, isAll, isLast }: { section: Section; isAll: boolean; isLast: boolean }) {
  return (
    <div className={css.section}>
      {section.link !== null && <div className={css.link}>{section.link}</div>}
      {partsOf(section.frames).map((part, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a traceback does not change.
        <PartView key={index} part={part} isAll={isAll} />
      ))}
      {!isLast && section.error !== null && <div className={`${css.frame} ${css.earlier}`}>{section.error}</div>}
    </div>
  );
}

function PartView({ part, isAll }: { part: Part; isAll: boolean }) {
  if (part.kind === "own") return <FrameView frame={part.frame} />;
  if (isAll)
    return part.frames.map((frame) => <FrameView key={`${frame.file}:${frame.line}:${frame.name}`} frame={frame} />);
  return (
    <details className={css.library}>
      <summary>
        <Icon name="right" />
        {plural(part.frames.length, "frame")} in {part.library}
      </summary>
      {part.frames.map((frame) => (
        <FrameView key={`${frame.file}:${frame.line}:${frame.name}`} frame={frame} />
      ))}
    </details>
  );
}

function FrameView({ frame }: { frame: Frame }) {
  return (
    <div className={css.frame}>
      <div className="el" title={frame.file}>
        <span className="d2">{shortFile(frame.file)}:</span>
        {frame.line} in <b>{frame.name}</b>
      </div>
      {frame.source.map(({ line, text }) => (
        <div key={line} className={frame.library === null && line === frame.line ? css.hit : css.source}>
          <span className="d3">{line}</span>
          <span>{text}</span>
        </div>
      ))}
    </div>
  );
}
