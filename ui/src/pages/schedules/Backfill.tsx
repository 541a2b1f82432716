import { type FormEvent, useEffect, useState } from "react";
import { problemOf } from "../../api/problem";
import { useMay } from "../../api/session";
import { Button } from "../../components/Button";
import { Dialog, FormFoot } from "../../components/Dialog";
import { TimeField } from "../../components/Field";
import { useAction } from "../../hooks/useAction";
import { serverNow } from "../../hooks/useNow";
import { count, plural } from "../../lib/format";
import { backfill, MOST } from "./backfill";
import type { Range } from "./days";
import type { Schedule } from "./words";

// A fixed delay has no ticks of its own in the past.
export function Backfill({ schedule, range }: { schedule: Schedule; range: Range }) {
  const may = useMay();
  const [isOpen, setOpen] = useState(false);
  if (!may("operate") || schedule.after !== null) return null;
  return (
    <>
      <Button onClick={() => setOpen(true)}>Backfill…</Button>
      {isOpen && <BackfillDialog schedule={schedule} range={range} onClose={() => setOpen(false)} />}
    </>
  );
}

interface Props {
  schedule: Schedule;
  range: Range;
  onClose: () => void;
}

type Looked = { number: number } | { refusal: string } | null;
const PAUSE_MS = 400;
const MINUTE_MS = 60_000;

// Says by a dry run how many ticks would start, before anything does.
function BackfillDialog({ schedule, range, onClose }: Props) {
  const [from, setFrom] = useState<string | null>(new Date(range.from).toISOString());
  // Both ends are included, and a tick at midnight belongs to the next day.
  const [to, setTo] = useState<string | null>(new Date(Math.min(range.to - MINUTE_MS, serverNow())).toISOString());
  const looked = useDryRun(schedule, from, to);
  const start = useAction(() => backfill(schedule, from ?? "", to ?? "", false), {
    done: (started) => `Started ${plural(started, "tick")} of ${schedule.name}.`,
    failed: "Not started",
  });
  const number = looked !== null && "number" in looked ? looked.number : 0;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (number > 0 && (await start.run()) !== undefined) onClose();
  };
  return (
    <Dialog title={`Backfill ${schedule.name}`} onClose={onClose}>
      <form className="col" onSubmit={(event) => void submit(event)}>
        <p className="d2">
          Starts the ticks of a time in the past that have not run, each once, in queue {schedule.queue}.
        </p>
        <TimeField label="from" value={from} onChange={setFrom} />
        <TimeField label="to" value={to} onChange={setTo} />
        <p role="status">{wordsOf(looked, from !== null && to !== null)}</p>
        {start.problem && <p className="sm c-failed">{start.problem.message}</p>}
        <FormFoot>
          <Button onClick={onClose}>Start none</Button>
          <Button kind="primary" type="submit" disabled={number === 0 || start.isBusy}>
            {number === 0 ? "Start" : `Start ${count(number)}`}
          </Button>
        </FormFoot>
      </form>
    </Dialog>
  );
}

function wordsOf(looked: Looked, isWhole: boolean): string {
  if (!isWhole) return "Give both times.";
  if (looked === null) return "Looking which ticks did not run…";
  if ("refusal" in looked) return `It would be refused: ${looked.refusal}.`;
  if (looked.number === 0) return "Every tick in this time has run, or the schedule leaves it out.";
  if (looked.number >= MOST) return `It would start the first ${count(MOST)}; repeat it for those after.`;
  return `It would start ${plural(looked.number, "execution")}.`;
}

function useDryRun(schedule: Schedule, from: string | null, to: string | null): Looked {
  const [looked, setLooked] = useState<Looked>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the row of a schedule changes with every tick; its id does not.
  useEffect(() => {
    setLooked(null);
    if (from === null || to === null) return;
    let isOld = false;
    const tell = (found: Looked) => {
      if (!isOld) setLooked(found);
    };
    const timer = setTimeout(() => {
      backfill(schedule, from, to, true).then(
        (number) => tell({ number }),
        (error) => tell({ refusal: problemOf(error).message }),
      );
    }, PAUSE_MS);
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [schedule.scheduleId, from, to]);
  return looked;
}
