import { memo } from "react";
import { useZone } from "../../../hooks/useZone";
import { partsOf } from "../../../lib/zone";
import css from "./Log.module.css";
import { type LogLine, levelOf } from "./lines";

interface Props {
  line: LogLine;
  index: number;
  tall: number;
  search: string;
  isMarked: boolean;
}

export const LineView = memo(function LineView({ line, index, tall, search, isMarked }: Props) {
  const { zone } = useZone();
  const level = levelOf(line);
  const tint = level === "error" ? css.error : level === "warning" ? css.warning : "";
  return (
    <div data-index={index} className={`${css.line} ${tint} ${isMarked ? css.marked : ""}`} style={{ height: tall }}>
      <span className={css.time} title={line.at}>
        {timeOf(line.at, zone)}
      </span>
      <span className={css.stream}>{line.stream}</span>
      <span className={css.text}>{search === "" ? line.text : <Marked text={line.text} search={search} />}</span>
    </div>
  );
});

function timeOf(at: string, zone: Parameters<typeof partsOf>[1]): string {
  const moment = new Date(at);
  const { hour, minute, second } = partsOf(moment, zone);
  const part = String(Math.floor(moment.getUTCMilliseconds() / 10)).padStart(2, "0");
  return `${hour}:${minute}:${second}.${part}`;
}

function Marked({ text, search }: { text: string; search: string }) {
  const at = text.toLowerCase().indexOf(search.toLowerCase());
  if (at < 0) return <>{text}</>;
  const end = at + search.length;
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, end)}</mark>
      <Marked text={text.slice(end)} search={search} />
    </>
  );
}
