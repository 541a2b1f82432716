import css from "./Segmented.module.css";

interface Props<T extends string> {
  label: string;
  value: T;
  options: readonly { value: T; label: string }[];
  onChange: (value: T) => void;
}

// One of a few: a time range, a view.
export function Segmented<T extends string>({ label, value, options, onChange }: Props<T>) {
  return (
    <fieldset className={css.segmented} aria-label={label}>
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          className={option.value === value ? css.on : ""}
          aria-pressed={option.value === value}
          onClick={() => onChange(option.value)}
        >
          {option.label}
        </button>
      ))}
    </fieldset>
  );
}
