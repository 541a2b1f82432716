// Numbers, durations and sizes as text. Times need a zone: see hooks/useZone.

const COUNT = new Intl.NumberFormat("en-US");
const MOST_EXACT = 10_000;

export function count(value: number): string {
  return COUNT.format(value);
}

// 54.2 k where there is no room for 54,201.
export function shortCount(value: number): string {
  if (value < MOST_EXACT) return count(value);
  if (value < 1_000_000) return `${oneDigit(value / 1000)} k`;
  return `${oneDigit(value / 1_000_000)} M`;
}

export function capped(value: number, isCapped: boolean): string {
  return isCapped ? `${count(value)}+` : count(value);
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

// Of a share between 0 and 1.
export function percent(share: number): string {
  const value = share * 100;
  return `${value === 0 || value === 100 ? value : oneDigit(value)} %`;
}

export function rate(perSecond: number): string {
  if (perSecond < 0.005) return "0";
  return perSecond < 0.1 ? perSecond.toFixed(2) : oneDigit(perSecond);
}

const SECOND = 1;
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

// 182 ms, 4.2 s, 42 s, 4 m 10 s, 1 h 12 m, 14 d.
export function duration(seconds: number): string {
  if (seconds < 0) return "0 s";
  if (seconds < SECOND) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${oneDigit(seconds)} s`;
  if (seconds < MINUTE) return `${Math.round(seconds)} s`;
  if (seconds < HOUR) return twoParts(seconds, MINUTE, "m", 1, "s");
  if (seconds < DAY) return twoParts(seconds, HOUR, "h", MINUTE, "m");
  return seconds < 7 * DAY ? twoParts(seconds, DAY, "d", HOUR, "h") : `${Math.floor(seconds / DAY)} d`;
}

// The age of something, without seconds above a minute: 9 s, 26 min, 1 h 04 m, 14 d.
export function age(seconds: number): string {
  if (seconds < MINUTE) return `${Math.max(0, Math.floor(seconds))} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
  return duration(seconds);
}

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${size < 10 && unit > 0 ? oneDigit(size) : Math.round(size)} ${units[unit]}`;
}

// The last eight characters tell ids of one second apart; the first ones are the same.
export function shortId(id: string): string {
  return id.length > 9 ? `…${id.slice(-8)}` : id;
}

export function secondsBetween(from: string, to: string | number): number {
  return ((typeof to === "number" ? to : Date.parse(to)) - Date.parse(from)) / 1000;
}

// order=SO-88213 cents=4990, as in a row of a list.
export function argumentsInLine(value: Record<string, unknown> | null | undefined): string {
  const entries = Object.entries(value ?? {});
  return entries.length === 0 ? "no arguments" : entries.map(([name, one]) => `${name}=${inLine(one)}`).join(" ");
}

function inLine(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function twoParts(seconds: number, large: number, largeUnit: string, small: number, smallUnit: string): string {
  const rest = Math.floor((seconds % large) / small);
  const first = `${Math.floor(seconds / large)} ${largeUnit}`;
  return rest === 0 ? first : `${first} ${String(rest).padStart(2, "0")} ${smallUnit}`;
}

function oneDigit(value: number): string {
  return value.toFixed(1).replace(/\.0$/, "");
}
