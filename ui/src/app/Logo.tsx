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
      <path d="M13.700 2.900A8 8 0 1 0 17.900 9" strokeLinecap="round" />
      <path d="M10 5.500V10l3 2" strokeLinecap="round" strokeLinejoin="round" />
      <circle cx="15.800" cy="4.600" r="2.300" fill="currentColor" stroke="none" />
    </svg>
  );
}
