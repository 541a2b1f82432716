// One time zone for everything that is shown and typed: that of the browser, or UTC.
import { stored } from "./stored";

export type Zone = "local" | "UTC";

export const zone = stored<Zone>("rota.zone", "local", ["local", "UTC"]);

export function zoneName(of: Zone): string {
  return of === "UTC" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
}

// Making a format takes longer than using it a hundred times.
const LABELS = new Map<Zone, Intl.DateTimeFormat>();

// CET, or UTC+1 where the zone has no short name.
export function zoneLabel(of: Zone, at: Date = new Date()): string {
  let format = LABELS.get(of);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-GB", { timeZone: zoneName(of), timeZoneName: "short" });
    LABELS.set(of, format);
  }
  const parts = format.formatToParts(at);
  return parts.find((part) => part.type === "timeZoneName")?.value ?? zoneName(of);
}

interface Parts {
  year: string;
  month: string;
  day: string;
  hour: string;
  minute: string;
  second: string;
}

const FORMATS = new Map<Zone, Intl.DateTimeFormat>();
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export function partsOf(at: Date, of: Zone): Parts {
  let format = FORMATS.get(of);
  if (format === undefined) {
    const two = "2-digit";
    const fields = { year: "numeric", month: two, day: two, hour: two, minute: two, second: two } as const;
    format = new Intl.DateTimeFormat("en-GB", { timeZone: zoneName(of), hourCycle: "h23", ...fields });
    FORMATS.set(of, format);
  }
  const parts = format.formatToParts(at).map((part) => [part.type, part.value]);
  return Object.fromEntries(parts) as unknown as Parts;
}

export function dayOf(at: Date, of: Zone): string {
  const { year, month, day } = partsOf(at, of);
  return `${year}-${month}-${day}`;
}

// 02:51:14 today, 16 Nov 02:51 on another day, 16 Nov 2025 02:51 in another year.
export function shortTime(at: Date, of: Zone, now: Date): string {
  const time = partsOf(at, of);
  if (dayOf(at, of) === dayOf(now, of)) return `${time.hour}:${time.minute}:${time.second}`;
  const date = `${Number(time.day)} ${MONTHS[Number(time.month) - 1]}`;
  const year = time.year === partsOf(now, of).year ? "" : ` ${time.year}`;
  return `${date}${year} ${time.hour}:${time.minute}`;
}

export function clockTime(at: Date, of: Zone): string {
  const time = partsOf(at, of);
  return `${time.hour}:${time.minute}`;
}

// 17 November 2026, 02:51:14.120 CET
export function longTime(at: Date, of: Zone): string {
  const time = partsOf(at, of);
  const milliseconds = String(at.getUTCMilliseconds()).padStart(3, "0");
  const date = `${Number(time.day)} ${MONTHS[Number(time.month) - 1]} ${time.year}`;
  return `${date}, ${time.hour}:${time.minute}:${time.second}.${milliseconds} ${zoneLabel(of, at)}`;
}

// The moment that a person means who types 2026-11-17T02:51 in this zone; null if it is no time.
export function typedTime(text: string, of: Zone): Date | null {
  const asUtc = new Date(`${text}Z`);
  if (Number.isNaN(asUtc.getTime())) return null;
  const shownAs = (at: Date) => {
    const { year, month, day, hour, minute, second } = partsOf(at, of);
    return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  };
  const guess = new Date(2 * asUtc.getTime() - shownAs(asUtc));
  return new Date(guess.getTime() + asUtc.getTime() - shownAs(guess));
}

// What a field of type datetime-local shows for a moment.
export function fieldTime(at: Date, of: Zone): string {
  const { year, month, day, hour, minute } = partsOf(at, of);
  return `${year}-${month}-${day}T${hour}:${minute}`;
}
