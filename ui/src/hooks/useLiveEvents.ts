import { useEffect, useRef } from "react";
import { type Batch, listen } from "../api/live";

// For a page that decides itself what new events mean, such as a list with "38 new".
export function useLiveEvents(handler: (batch: Batch) => void): void {
  const latest = useRef(handler);
  useEffect(() => {
    latest.current = handler;
  });
  useEffect(() => listen((batch) => latest.current(batch)), []);
}
