import { useState } from "react";
import { useIsPhone } from "../hooks/useMedia";
import { RANGES, useTimeRange } from "../hooks/useTimeRange";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { TimeField } from "./Field";
import { Segmented } from "./Segmented";

const WORDS: Record<string, string> = { "15m": "15 m", "1h": "1 h", "6h": "6 h", "24h": "24 h", "7d": "7 d" };
const ON_PHONE = ["1h", "6h", "24h"];

// The shared time range, for the top bar of Overview, Executions, Queues and Workers.
export function RangePicker() {
  const range = useTimeRange();
  const [isOpen, setOpen] = useState(false);
  const isPhone = useIsPhone();
  const shown = RANGES.filter((one) => !isPhone || ON_PHONE.includes(one));
  const isOther = range.until !== null || !(RANGES as readonly string[]).includes(range.since);
  const options = [
    ...shown.map((value) => ({ value: value as string, label: WORDS[value] ?? value })),
    { value: "other", label: "…" },
  ];
  return (
    <>
      <Segmented
        label="Time range"
        value={isOther ? "other" : range.since}
        options={options}
        onChange={(value) => (value === "other" ? setOpen(true) : range.set(value))}
      />
      {isOpen && <OtherRange onClose={() => setOpen(false)} />}
    </>
  );
}

function OtherRange({ onClose }: { onClose: () => void }) {
  const range = useTimeRange();
  const [from, setFrom] = useState<string | null>(null);
  const [to, setTo] = useState<string | null>(null);
  const isWrong = from !== null && to !== null && from >= to;
  const show = () => {
    if (from === null) return;
    range.set(from, to);
    onClose();
  };
  return (
    <Dialog
      title="Show which time?"
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>Keep the range</Button>
          <Button kind="primary" disabled={from === null || isWrong} onClick={show}>
            Show it
          </Button>
        </>
      }
    >
      <TimeField label="from" value={from} onChange={setFrom} />
      <TimeField label="to" value={to} onChange={setTo} error={isWrong ? "the end is before the beginning" : null} />
      <p className="sm d3">Without an end: up to now.</p>
    </Dialog>
  );
}
