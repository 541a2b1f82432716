import { type PointerEvent, type RefObject, useCallback, useEffect, useRef, useState } from "react";

export interface View {
  x: number;
  y: number;
  zoom: number;
}

export interface Size {
  width: number;
  height: number;
}

const LEAST = 0.05;
const MOST = 1.5;
const LARGEST_FIT = 1.1;
const MARGIN = 12;

interface Viewport {
  frame: RefObject<HTMLDivElement | null>;
  view: View;
  frameSize: Size;
  // Moves the middle of the frame to a place of the graph.
  centre: (x: number, y: number) => void;
  // To be spread on the frame: drags move the graph.
  handlers: {
    onPointerDown: (event: PointerEvent) => void;
    onPointerMove: (event: PointerEvent) => void;
    onPointerUp: (event: PointerEvent) => void;
  };
}

// What of a graph is seen, and how large. The graph fits into its frame until it is moved or zoomed by hand, and again
// each time that `fits` grows. A drag moves it; a pinch, or the wheel with Ctrl, zooms at the cursor.
export function useViewport(graph: Size, fits: number): Viewport {
  const frame = useRef<HTMLDivElement>(null);
  const [frameSize, setFrameSize] = useState<Size>({ width: 0, height: 0 });
  const [chosen, setChosen] = useState<View | null>(null);
  const drag = useRef<{ x: number; y: number } | null>(null);
  const view = chosen ?? fitted(graph, frameSize);
  const latest = useRef(view);
  latest.current = view;

  // biome-ignore lint/correctness/useExhaustiveDependencies: a new number of `fits` is the order to fit.
  useEffect(() => setChosen(null), [fits]);
  useEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const seen = new ResizeObserver(() => setFrameSize({ width: element.clientWidth, height: element.clientHeight }));
    seen.observe(element);
    const zoom = (event: WheelEvent) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const box = element.getBoundingClientRect();
      setChosen(zoomed(latest.current, event.clientX - box.left, event.clientY - box.top, 0.99 ** event.deltaY));
    };
    element.addEventListener("wheel", zoom, { passive: false });
    return () => {
      seen.disconnect();
      element.removeEventListener("wheel", zoom);
    };
  }, []);

  const centre = useCallback(
    (x: number, y: number) => {
      const { zoom } = latest.current;
      setChosen({ x: frameSize.width / 2 - x * zoom, y: frameSize.height / 2 - y * zoom, zoom });
    },
    [frameSize],
  );
  return {
    frame,
    view,
    frameSize,
    centre,
    handlers: {
      onPointerDown: (event) => {
        // A press on a node chooses it.
        if (event.button !== 0 || (event.target as Element).closest("button") !== null) return;
        drag.current = { x: event.clientX - view.x, y: event.clientY - view.y };
        event.currentTarget.setPointerCapture(event.pointerId);
      },
      onPointerMove: (event) => {
        const from = drag.current;
        if (from !== null) setChosen({ x: event.clientX - from.x, y: event.clientY - from.y, zoom: view.zoom });
      },
      onPointerUp: () => {
        drag.current = null;
      },
    },
  };
}

function fitted(graph: Size, frame: Size): View {
  const wide = (frame.width - 2 * MARGIN) / Math.max(graph.width, 1);
  const tall = (frame.height - 2 * MARGIN) / Math.max(graph.height, 1);
  const zoom = Math.max(LEAST, Math.min(LARGEST_FIT, wide, tall));
  return { x: (frame.width - graph.width * zoom) / 2, y: (frame.height - graph.height * zoom) / 2, zoom };
}

// The place under the cursor stays there.
function zoomed(view: View, x: number, y: number, factor: number): View {
  const zoom = Math.max(LEAST, Math.min(MOST, view.zoom * factor));
  const share = zoom / view.zoom;
  return { x: x - (x - view.x) * share, y: y - (y - view.y) * share, zoom };
}
