import { bytes, capped, shortCount } from "../lib/format";

interface CountProps {
  value: number | null | undefined;
  isCapped?: boolean;
  // 54.2 k instead of 54,201.
  isShort?: boolean;
}

export function Count({ value, isCapped = false, isShort = false }: CountProps) {
  if (value === null || value === undefined) return <span className="d3">—</span>;
  return <span className="tab nw">{isShort ? shortCount(value) : capped(value, isCapped)}</span>;
}

export function Bytes({ value }: { value: number | null | undefined }) {
  return <span className="tab nw">{value === null || value === undefined ? "—" : bytes(value)}</span>;
}
