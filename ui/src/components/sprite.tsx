// All icons, each on a grid of 16 px with a stroke of 1.5 px. `solid` fills a shape with the colour of the text, `cut` draws
// on it with the colour of the panel.

const solid = { fill: "currentColor", stroke: "none" } as const;
const cut = { stroke: "var(--panel)" } as const;
const OCTAGON = "M5.300 1.500h5.400l3.800 3.800v5.400l-3.800 3.800H5.300l-3.800-3.800V5.300z";

const SHAPES = {
  // States
  clock: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M8 4.750V8l2.250 1.600" />
    </>
  ),
  hourglass: (
    <path d="M4 2.250h8M4 13.750h8M5 2.500c0 3 6 3.500 6 5.500s-6 2.500-6 5.500M11 2.500c0 3-6 3.500-6 5.500s6 2.500 6 5.500" />
  ),
  lines: <path d="M2.500 4h11M2.500 8h11M2.500 12h6" />,
  "disc-play": (
    <>
      <circle cx="8" cy="8" r="6.500" {...solid} />
      <path d="M6.500 5.200v5.600L11 8z" fill="var(--panel)" stroke="none" />
    </>
  ),
  "arrow-circle": <path d="M13.200 8a5.200 5.200 0 1 1-1.600-3.750M13.400 1.800v3h-3" />,
  tick: <path d="M2.750 8.500l3.500 3.500 7-7.500" />,
  "octagon-cross": (
    <>
      <path d={OCTAGON} {...solid} />
      <path d="M5.600 5.600l4.800 4.800M10.400 5.600l-4.800 4.800" strokeWidth="1.700" {...cut} />
    </>
  ),
  "circle-slash": (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M3.900 12.100l8.200-8.200" />
    </>
  ),
  chevrons: <path d="M3 4l4 4-4 4M8.500 4l4 4-4 4" />,
  // Trouble, and outcomes of ticks
  triangle: (
    <>
      <path d="M8 1.800L15 14H1z" {...solid} />
      <path d="M8 6.200v3.600M8 12v.1" strokeWidth="1.600" {...cut} />
    </>
  ),
  pause: <path d="M5 3v10M11 3v10" strokeWidth="2.400" />,
  cross: <path d="M4 4l8 8M12 4l-8 8" />,
  dash: <path d="M3 8h10" />,
  disc: <circle cx="8" cy="8" r="4" {...solid} />,
  octagon: <path d={OCTAGON} {...solid} />,
  diamond: <path d="M8 2l6 6-6 6-6-6z" {...solid} />,
  ring: <circle cx="8" cy="8" r="4" />,
  // Places
  overview: <path d="M2.500 13.500v-5M6.250 13.500v-9M10 13.500V7M13.500 13.500v-11" />,
  bell: <path d="M3.500 11.500c1-1 1-2 1-4a3.500 3.500 0 0 1 7 0c0 2 0 3 1 4zM6.750 13.750h2.500" />,
  list: <path d="M5.500 4h8M5.500 8h8M5.500 12h8M2.500 4h.1M2.500 8h.1M2.500 12h.1" />,
  graph: (
    <>
      <circle cx="3.500" cy="8" r="1.750" />
      <circle cx="12.500" cy="3.750" r="1.750" />
      <circle cx="12.500" cy="12.250" r="1.750" />
      <path d="M5.250 7.250l5.500-2.750M5.250 8.750l5.500 2.750" />
    </>
  ),
  letter: <path d="M2 4.500h12v8H2zM2 4.750l6 4.500 6-4.500" />,
  braces: (
    <path d="M6 2.500c-2 0-2 1.500-2 3S3.500 8 2 8c1.500 0 2 1 2 2.500s0 3 2 3M10 2.500c2 0 2 1.500 2 3s.5 2.500 2 2.500c-1.500 0-2 1-2 2.500s0 3-2 3" />
  ),
  calendar: <path d="M2.500 3.500h11v10h-11zM2.500 6.500h11M5.500 2v2.500M10.500 2v2.500" />,
  bolt: <path d="M9 1.750L3.500 9H8l-1 5.250L12.500 7H8z" />,
  layers: <path d="M2.500 5L8 2.250 13.500 5 8 7.750zM2.500 8L8 10.750 13.500 8M2.500 11L8 13.750 13.500 11" />,
  chip: (
    <path d="M4.500 4.500h7v7h-7zM6.500 2v2.500M9.500 2v2.500M6.500 11.500V14M9.500 11.500V14M2 6.500h2.500M2 9.500h2.500M11.500 6.500H14M11.500 9.500H14" />
  ),
  gear: (
    <>
      <circle cx="8" cy="8" r="2.250" />
      <path d="M8 1.750v2M8 12.250v2M1.750 8h2M12.250 8h2M3.600 3.600L5 5M11 11l1.400 1.400M12.400 3.600L11 5M5 11l-1.400 1.400" />
    </>
  ),
  person: (
    <>
      <circle cx="8" cy="5" r="2.500" />
      <path d="M3 14c.5-3 2.250-4.500 5-4.500s4.500 1.500 5 4.500" />
    </>
  ),
  // Actions
  search: (
    <>
      <circle cx="7" cy="7" r="4.500" />
      <path d="M10.500 10.500L14 14" />
    </>
  ),
  play: <path d="M4.500 2.750v10.500L13 8z" />,
  copy: <path d="M5.500 5.500h8v8h-8zM3.500 10.500h-1v-8h8v1" />,
  right: <path d="M6 4l4 4-4 4" />,
  left: <path d="M10 4L6 8l4 4" />,
  down: <path d="M4 6l4 4 4-4" />,
  up: <path d="M4 10l4-4 4 4" />,
  dots: <path d="M3.500 8h.1M8 8h.1M12.500 8h.1" strokeWidth="2.400" />,
  download: <path d="M8 2.500v8M4.750 7.500L8 10.750l3.250-3.250M2.500 13.500h11" />,
  filter: <path d="M2 4h12M4.500 8h7M7 12h2" />,
  columns: <path d="M2.500 3h11v10h-11zM6.200 3v10M9.800 3v10" />,
  deploy: <path d="M8 2.500l4.500 5H10v6H6v-6H3.500z" />,
  link: (
    <path d="M6.500 9.500l3-3M7 4.500L8.500 3a3 3 0 0 1 4.300 4.300l-1.500 1.500M9 11.500L7.500 13a3 3 0 0 1-4.300-4.300l1.500-1.500" />
  ),
  fit: <path d="M2.500 6V2.500H6M10 2.500h3.500V6M13.500 10v3.500H10M6 13.500H2.500V10" />,
  plus: <path d="M8 3v10M3 8h10" />,
  sun: (
    <>
      <circle cx="8" cy="8" r="3" />
      <path d="M8 1.500V3M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1.100 1.100M11.500 11.500l1.100 1.100M12.600 3.400l-1.100 1.100M4.500 11.500l-1.100 1.100" />
    </>
  ),
} as const;

export type IconName = keyof typeof SHAPES;

// In the page once; every icon refers to it.
export function Sprite() {
  return (
    <svg width="0" height="0" aria-hidden="true" style={{ position: "absolute" }}>
      {Object.entries(SHAPES).map(([name, shape]) => (
        <symbol key={name} id={`i-${name}`} viewBox="0 0 16 16">
          {shape}
        </symbol>
      ))}
    </svg>
  );
}

export function isIcon(name: string): name is IconName {
  return name in SHAPES;
}
