import { type InputHTMLAttributes, type ReactNode, type TextareaHTMLAttributes, useId, useState } from "react";
import { useZone } from "../hooks/useZone";
import { fieldTime, typedTime } from "../lib/zone";
import css from "./Field.module.css";

interface FieldProps {
  label: ReactNode;
  // A word about the value, such as its type.
  hint?: ReactNode;
  error?: string | null;
  children: (id: string, describedBy: string | undefined) => ReactNode;
}

// A label, a control, and what is wrong with the value.
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const note = `${id}-note`;
  const about = `${id}-hint`;
  const described = [error ? note : "", hint === undefined ? "" : about].join(" ").trim();
  return (
    <div className={css.field} data-invalid={error ? true : undefined}>
      <label htmlFor={id}>{label}</label>
      <div className={css.control}>
        {children(id, described || undefined)}
        {error && (
          <span id={note} className="sm c-failed">
            {error}
          </span>
        )}
        {hint !== undefined && (
          <span id={about} className="sm d3">
            {hint}
          </span>
        )}
      </div>
    </div>
  );
}

interface TextProps extends Omit<InputHTMLAttributes<HTMLInputElement>, "className" | "onChange" | "value"> {
  label: ReactNode;
  hint?: ReactNode;
  error?: string | null;
  value: string;
  onChange: (value: string) => void;
}

export function TextField({ label, hint, error, value, onChange, ...rest }: TextProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(id, describedBy) => (
        <input
          {...rest}
          id={id}
          className={css.input}
          value={value}
          aria-invalid={error ? true : undefined}
          aria-describedby={describedBy}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

interface AreaProps extends Omit<TextareaHTMLAttributes<HTMLTextAreaElement>, "className" | "onChange" | "value"> {
  label: ReactNode;
  hint?: ReactNode;
  error?: string | null;
  value: string;
  onChange: (value: string) => void;
}

export function TextArea({ label, hint, error, value, onChange, ...rest }: AreaProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(id, describedBy) => (
        <textarea
          {...rest}
          id={id}
          className={css.area}
          value={value}
          aria-invalid={error ? true : undefined}
          aria-describedby={describedBy}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

interface ChoiceProps {
  label: ReactNode;
  hint?: ReactNode;
  error?: string | null;
  value: string;
  options: readonly { value: string; label: string }[];
  onChange: (value: string) => void;
}

export function ChoiceField({ label, hint, error, value, options, onChange }: ChoiceProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(id, describedBy) => (
        <select
          id={id}
          className={css.input}
          value={value}
          aria-describedby={describedBy}
          onChange={(event) => onChange(event.target.value)}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface TimeProps {
  label: ReactNode;
  // A moment as RFC 3339 in UTC; null while nothing, or no time, is typed.
  value: string | null;
  onChange: (value: string | null) => void;
  error?: string | null;
}

// A date and a time in the zone of the page, which stands beside it.
export function TimeField({ label, value, onChange, error }: TimeProps) {
  const { zone, label: zoneWord } = useZone();
  const [text, setText] = useState<string | null>(null);
  const shown = text ?? (value === null ? "" : fieldTime(new Date(value), zone));
  return (
    <Field label={label} error={error}>
      {(id) => (
        <span className="row">
          <input
            id={id}
            type="datetime-local"
            className={css.input}
            value={shown}
            onChange={(event) => {
              setText(event.target.value);
              onChange(typedTime(event.target.value, zone)?.toISOString() ?? null);
            }}
            onBlur={() => setText(null)}
          />
          <span className="sm d3 nw">{zoneWord}</span>
        </span>
      )}
    </Field>
  );
}

interface CheckProps {
  label: ReactNode;
  isOn: boolean;
  isHalf?: boolean;
  // Only the box, for a row of a table; the label is for screen readers.
  isBare?: boolean;
  onChange: (isOn: boolean, isRange: boolean) => void;
}

export function Check({ label, isOn, isHalf = false, isBare = false, onChange }: CheckProps) {
  return (
    <label className={css.check}>
      <input
        type="checkbox"
        checked={isOn}
        ref={(box) => {
          if (box !== null) box.indeterminate = isHalf;
        }}
        onChange={(event) => onChange(event.target.checked, (event.nativeEvent as MouseEvent).shiftKey === true)}
      />
      <span className={isBare ? "unseen" : ""}>{label}</span>
    </label>
  );
}
