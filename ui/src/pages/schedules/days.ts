// Days and weeks in the zone of the page. A day is written 2026-11-17.
import { dayOf, typedTime, type Zone } from "../../lib/zone";

const DAY_MS = 86_400_000;

export function plusDays(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00Z`) + days * DAY_MS).toISOString().slice(0, 10);
}

export function mondayOf(day: string): string {
  return plusDays(day, -((new Date(`${day}T00:00Z`).getUTCDay() + 6) % 7));
}

export function isDay(text: string | null): text is string {
  return text !== null && /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(`${text}T00:00Z`));
}

// The first moment of a day, in milliseconds.
export function startOf(day: string, zone: Zone, clock = "00:00"): number {
  return typedTime(`${day}T${clock}`, zone)?.getTime() ?? Date.parse(`${day}T${clock}Z`);
}

// Tuesday 17 November
export function dayWords(day: string, isShort = false): string {
  const length = isShort ? ("short" as const) : ("long" as const);
  const format = new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", weekday: length, day: "numeric", month: length });
  return format.format(new Date(`${day}T00:00Z`)).replace(",", "");
}

export type Span = "day" | "week" | "list";

export interface Range {
  span: Span;
  // The first day, and how many there are.
  first: string;
  days: number;
  from: number;
  to: number;
}

const LISTED_DAYS = 7;

// What is shown: the day, the week of the day, or in the list the last week.
export function rangeOf(span: Span, day: string, zone: Zone): Range {
  const days = span === "day" ? 1 : LISTED_DAYS;
  const first = span === "day" ? day : span === "week" ? mondayOf(day) : plusDays(day, 1 - LISTED_DAYS);
  return { span, first, days, from: startOf(first, zone), to: startOf(plusDays(first, days), zone) };
}

export function rangeTitle({ span, first, days }: Range): string {
  if (span === "day") return dayWords(first);
  return `${dayWords(first, true)} to ${dayWords(plusDays(first, days - 1), true)}`;
}

// "today", "on 16 Nov", "this week": for the sum of a ledger.
export function rangeWords(range: Range, now: number, zone: Zone): string {
  const today = dayOf(new Date(now), zone);
  if (range.span === "day") return range.first === today ? "today" : `on ${dayWords(range.first, true)}`;
  if (range.span === "list") return "in 7 days";
  return range.first === mondayOf(today) ? "this week" : `in the week of ${dayWords(range.first, true)}`;
}
