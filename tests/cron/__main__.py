"""`python -m tests.cron`: compares with the oracle around every change of every clock from 2000 to 2040."""

from __future__ import annotations

import argparse
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from rota.domain.ticks import Gap, Repeat
from tests.cron.compare import difference
from tests.cron.windows import EXPRESSIONS, invented, windows, zones


def examine(zone: str, share: int, seed: int) -> tuple[int, list[str]]:
    """How much was compared, and what differed. Each window has `share` expressions, taken in turn."""
    entropy = random.Random(f"{zone} {seed}")
    compared, problems = 0, []
    for window in windows(zone):
        for _ in range(share):
            expression = entropy.choice(EXPRESSIONS) if entropy.random() < 0.6 else invented(entropy)
            gap, overlap = entropy.choice(list(Gap)), entropy.choice(list(Repeat))
            compared += 1
            if (problem := difference(expression, window, gap, overlap)) is not None:
                problems.append(problem)
    return compared, problems


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cron", description=__doc__)
    parser.add_argument("--share", type=int, default=4, help="expressions for each change of a clock")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--zone", help="only this one")
    arguments = parser.parse_args()
    names = [arguments.zone] if arguments.zone else zones()
    began, total, problems = time.monotonic(), 0, []
    with ProcessPoolExecutor() as pool:
        jobs = [pool.submit(examine, name, arguments.share, arguments.seed) for name in names]
        for done, job in enumerate(jobs, start=1):
            compared, found = job.result()
            total += compared
            problems += found
            print(f"\r{done} of {len(names)} zones, {total} comparisons", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for problem in problems[:50]:
        print(problem)
    print(f"{len(names)} zones, {total} comparisons in {time.monotonic() - began:.0f} s, {len(problems)} differences")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
