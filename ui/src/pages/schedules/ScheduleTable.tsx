import { Link } from "wouter";
import type { Answer } from "../../api/types";
import { type Column, DataTable } from "../../components/DataTable";
import { Hint } from "../../components/Hint";
import { Icon } from "../../components/Icon";
import { MarkChip } from "../../components/StateChip";
import { Age, Time } from "../../components/Time";
import { useZone } from "../../hooks/useZone";
import { zoneName } from "../../lib/zone";
import { Axis } from "./Axis";
import type { Range } from "./days";
import { Busiest, Herd, type HerdFound, sinceFirst } from "./Herd";
import { Strip } from "./Strip";
import { lastWords, type Schedule, type Tick } from "./words";

interface Props {
  schedules: readonly Schedule[];
  ticks: Answer<"/ticks"> | undefined;
  range: Range;
  herd: HerdFound | null;
  warningsOf: (schedule: Schedule) => readonly string[];
  chosen: Schedule | undefined;
  href: (schedule: Schedule) => string;
}

// A row for each schedule: in words, what became of the last tick, when the next one is, and its strip.
export function ScheduleTable({ schedules, ticks, range, herd, warningsOf, chosen, href }: Props) {
  const byId = ticksById(ticks, range.to);
  const of = (schedule: Schedule) => byId.get(schedule.scheduleId) ?? [];
  const name = (schedule: Schedule) => (
    <Name schedule={schedule} href={href(schedule)} warnings={warningsOf(schedule)} />
  );
  const columns: Column<Schedule>[] = [
    { key: "schedule", head: "schedule", cell: name, width: range.span === "list" ? "14%" : 140 },
    {
      key: "when",
      head: "when",
      cell: (schedule) => <When schedule={schedule} />,
      width: range.span === "list" ? undefined : 214,
    },
    {
      key: "last",
      head: "last tick",
      cell: (schedule) => <Last schedule={schedule} ticks={of(schedule)} />,
      width: 132,
    },
    { key: "next", head: "next in", cell: (schedule) => <Next schedule={schedule} />, isNumber: true, width: 96 },
    ...(range.span === "list" ? LISTED : [stripColumn(range, of)]),
  ];
  const quarters = ticks === undefined ? [] : sinceFirst(ticks);
  const lead =
    range.span === "list" || ticks === undefined
      ? undefined
      : { schedule: <Busiest quarters={quarters} herd={herd} />, strip: <Herd quarters={quarters} /> };
  return (
    <DataTable
      caption="Schedules"
      columns={columns}
      rows={schedules}
      rowKey={(schedule) => schedule.scheduleId}
      href={href}
      isOn={(schedule) => schedule.scheduleId === chosen?.scheduleId}
      lead={lead}
      phone={(schedule) => (
        <div className="col" style={{ gap: 4 }}>
          <div className="row">
            <span className="gr el">{name(schedule)}</span>
            <Last schedule={schedule} ticks={of(schedule)} />
          </div>
          <div className="row sm">
            <span className="gr el">
              <When schedule={schedule} />
            </span>
            <span className="nw">
              <Next schedule={schedule} />
            </span>
          </div>
          {range.span !== "list" && <Strip schedule={schedule} ticks={of(schedule)} range={range} />}
        </div>
      )}
    />
  );
}

function stripColumn(range: Range, of: (schedule: Schedule) => readonly Tick[]): Column<Schedule> {
  const strip = (schedule: Schedule) => <Strip schedule={schedule} ticks={of(schedule)} range={range} />;
  return { key: "strip", head: <Axis range={range} />, cell: strip };
}

const LISTED: readonly Column<Schedule>[] = [
  { key: "at", head: "next tick", cell: (schedule) => <Time at={schedule.nextAt} />, width: 110 },
  { key: "job", head: "job", cell: (schedule) => <JobLink schedule={schedule} />, width: 130 },
  { key: "tz", head: "zone", cell: (schedule) => <span className="d2">{schedule.tz}</span>, width: 120 },
  {
    key: "overlap",
    head: "overlap",
    cell: (schedule) => <span className="d2">{spaced(schedule.overlap)}</span>,
    width: 84,
  },
  {
    key: "catchUp",
    head: "catches up",
    cell: (schedule) => <span className="d2">{String(schedule.catchUp)}</span>,
    width: 90,
  },
  { key: "origin", head: "from", cell: (schedule) => <span className="d2">{spaced(schedule.origin)}</span>, width: 80 },
];

function JobLink({ schedule }: { schedule: Schedule }) {
  return (
    <Link
      href={`/jobs/${encodeURIComponent(schedule.app)}/${encodeURIComponent(schedule.job)}`}
      className="ln"
      title={schedule.job}
    >
      {schedule.job}
    </Link>
  );
}

function Name({ schedule, href, warnings }: { schedule: Schedule; href: string; warnings: readonly string[] }) {
  const link = (
    <Link href={href} className="ln" title={schedule.name}>
      {schedule.name}
    </Link>
  );
  if (warnings.length === 0) return link;
  return (
    <span className="row" style={{ gap: 4 }}>
      <span className="el">{link}</span>
      <Hint text={warnings.join("\n")}>
        <span style={{ display: "inline-flex", flex: "none" }}>
          <Icon name="triangle" className="c-warn" />
          <span className="unseen">{warnings.join(". ")}</span>
        </span>
      </Hint>
    </span>
  );
}

// The zone is named only if it is another one than that of the page.
function When({ schedule }: { schedule: Schedule }) {
  const { zone } = useZone();
  const { words, tz } = schedule;
  return (
    <span className="d2" title={words}>
      {tz === zoneName(zone) ? words.replace(`, in ${tz}`, "") : words}
    </span>
  );
}

function Last({ schedule, ticks }: { schedule: Schedule; ticks: readonly Tick[] }) {
  const words = lastWords(schedule, ticks);
  if (words === null) return <span className="d3">none yet</span>;
  return <MarkChip {...words}>{words.word}</MarkChip>;
}

function Next({ schedule }: { schedule: Schedule }) {
  if (schedule.nextAt !== null) return <Age until={schedule.nextAt} />;
  return <span className="d3">{schedule.waitsFor === null ? "—" : "at the end"}</span>;
}

// Of a schedule with more ticks than are listed, those to come reach up to the end of the time on screen.
function ticksById(ticks: Answer<"/ticks"> | undefined, end: number): Map<string, Tick[]> {
  const found = new Map<string, Tick[]>();
  for (const tick of ticks?.items ?? []) {
    const known = found.get(tick.scheduleId);
    if (known === undefined) found.set(tick.scheduleId, [tick]);
    else known.push(tick);
  }
  for (const id of ticks?.dense ?? []) {
    const last = found.get(id)?.at(-1);
    if (last?.isPlanned)
      found.get(id)?.splice(-1, 1, { ...last, until: new Date(end).toISOString(), count: Math.max(2, last.count) });
  }
  return found;
}

export function spaced(text: string): string {
  return text.replaceAll("_", " ");
}
