export function Logo({ size = 20 }: { size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      aria-hidden="true"
    >
      <path d="M13.750 2.950A8 8 0 1 1 3.050 6" strokeLinecap="round" />
      <path d="M10 5.500V10l3 2" strokeLinecap="round" strokeLinejoin="round" />
      <circle cx="15.800" cy="4.600" r="2.300" fill="currentColor" stroke="none" />
    </svg>
  );
}
