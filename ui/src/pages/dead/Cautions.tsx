// One sentence in a line.
export function Cautions({ of }: { of: readonly string[] }) {
  return of.map((sentence) => <p key={sentence}>{sentence}</p>);
}
