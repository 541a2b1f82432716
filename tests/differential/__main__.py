"""python -m tests.differential: many seeds, or one."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.differential.duel import Disagreement, duel


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many seeds to run (default 20)")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--steps", type=int, default=300, help="calls for each seed (default 300)")
    given = parser.parse_args()
    seeds = range(given.start, given.start + given.seeds) if given.seed is None else [given.seed]
    answered: Counter[str] = Counter()
    failed = 0
    for seed in seeds:
        try:
            answered.update(duel(seed, given.steps))
        except Disagreement as found:
            failed += 1
            print(found, flush=True)
    for kind, count in sorted(answered.items()):
        print(f"{kind:24} {count}")
    print(f"{len(seeds)} seeds of {given.steps} steps, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
