import css from "./Bar.module.css";

export interface Part {
  // Of the whole, between 0 and 1.
  share: number;
  colour: string;
}

interface Props {
  parts: readonly Part[];
  // What it shows, in words; the number itself stands beside it.
  label: string;
  width?: number | string;
}

export function Bar({ parts, label, width }: Props) {
  return (
    <span className={css.bar} style={{ width }} role="img" aria-label={label}>
      {parts.map((part) => (
        <i
          key={part.colour}
          style={{ width: `${Math.min(1, Math.max(0, part.share)) * 100}%`, background: `var(--${part.colour})` }}
        />
      ))}
    </span>
  );
}

interface DurationBarProps {
  // Between 0 and 1; null if the job tells no progress.
  progress: number | null;
  // "ends about 03:41", "usually 38 m".
  words?: string;
  width?: number | string;
}

// How far a running execution is: "71 %, ends about 03:41".
export function DurationBar({ progress, words, width }: DurationBarProps) {
  const text = [progress === null ? null : `${Math.floor(progress * 100)} %`, words].filter(Boolean).join(", ");
  return (
    <span className="row">
      {progress !== null && <Bar parts={[{ share: progress, colour: "running" }]} label={text} width={width ?? 96} />}
      <span className="sm d2 nw">{text}</span>
    </span>
  );
}
