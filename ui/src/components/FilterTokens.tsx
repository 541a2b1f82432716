import { Popover } from "@mantine/core";
import { type FormEvent, type ReactNode, useState } from "react";
import css from "./FilterTokens.module.css";
import { Icon } from "./Icon";

export interface Filter {
  // The parameter in the address: "job".
  name: string;
  // Values to choose from; without them any text.
  options?: readonly string[];
}

interface Props {
  filters: readonly Filter[];
  values: Record<string, readonly string[]>;
  onChange: (name: string, values: readonly string[]) => void;
  // Tokens of the page's own, before the others.
  before?: ReactNode;
}

// The filters in force as tokens, each with a way to drop it, and one to add another.
export function FilterTokens({ filters, values, onChange, before }: Props) {
  const used = filters.flatMap(({ name }) => (values[name] ?? []).map((value) => ({ name, value })));
  return (
    <div className={css.tokens}>
      <Icon name="filter" />
      {before}
      {used.map(({ name, value }) => (
        <span key={`${name}=${value}`} className={css.token}>
          <span className="d3">{name}</span> <span className={css.value}>{value}</span>
          <button
            type="button"
            aria-label={`Drop the filter ${name} ${value}`}
            onClick={() =>
              onChange(
                name,
                (values[name] ?? []).filter((one) => one !== value),
              )
            }
          >
            <Icon name="cross" />
          </button>
        </span>
      ))}
      <AddFilter
        filters={filters}
        onAdd={(name, value) => onChange(name, [...new Set([...(values[name] ?? []), value])])}
      />
    </div>
  );
}

function AddFilter({ filters, onAdd }: { filters: readonly Filter[]; onAdd: (name: string, value: string) => void }) {
  const [isOpen, setOpen] = useState(false);
  const [name, setName] = useState(filters[0]?.name ?? "");
  const [text, setText] = useState("");
  const options = filters.find((filter) => filter.name === name)?.options;
  const value = options !== undefined && !options.includes(text) ? (options[0] ?? "") : text;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (value.trim() === "") return;
    onAdd(name, value.trim());
    setText("");
    setOpen(false);
  };
  return (
    <Popover opened={isOpen} onChange={setOpen} position="bottom-start" trapFocus transitionProps={{ duration: 0 }}>
      <Popover.Target>
        <button type="button" className={css.add} onClick={() => setOpen(!isOpen)}>
          <Icon name="plus" />
          Filter
        </button>
      </Popover.Target>
      <Popover.Dropdown className={css.drop}>
        <form className="row" onSubmit={submit}>
          <select aria-label="Filter by" value={name} onChange={(event) => setName(event.target.value)}>
            {filters.map((filter) => (
              <option key={filter.name}>{filter.name}</option>
            ))}
          </select>
          {options === undefined ? (
            <input aria-label="Value" data-autofocus value={text} onChange={(event) => setText(event.target.value)} />
          ) : (
            <select aria-label="Value" value={value} onChange={(event) => setText(event.target.value)}>
              {options.map((option) => (
                <option key={option}>{option}</option>
              ))}
            </select>
          )}
          <button type="submit" className={css.apply}>
            Apply
          </button>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}
