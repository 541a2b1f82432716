"""python -m tests.simulation: many seeds, or one in detail."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.simulation import planted, runner
from tests.simulation.checker import check
from tests.simulation.coverage import Coverage
from tests.simulation.runner import Failure
from tests.simulation.story import tell
from tests.simulation.world import DATABASES, World

PIECE = 10
ENOUGH_FOR_COVERAGE = 100


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run (default 200)")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="replay this one and tell everything that happened")
    parser.add_argument("--digest", action="store_true", help="with --seed: only a fingerprint of the run")
    parser.add_argument("--database", choices=sorted(DATABASES), default="sqlite", help="what it runs on")
    parser.add_argument("--jobs", type=int, default=1, help="processes to use")
    parser.add_argument("--cover", action="store_true", help="find few of the seeds that together see everything")
    parser.add_argument("--planted", action="store_true", help="plant known bugs and show what catches them")
    arguments = parser.parse_args()
    if arguments.planted:
        return _planted(arguments.database)
    if arguments.seed is not None:
        return _one(arguments.seed, arguments.database, only_digest=arguments.digest)
    seeds = range(arguments.start, arguments.start + arguments.seeds)
    return (_cover if arguments.cover else _many)(seeds, arguments.database, arguments.jobs)


def _one(seed: int, database: str, *, only_digest: bool) -> int:
    if only_digest:
        history, _ = runner.run(seed, database)
        print(runner.digest(history))
        return 0
    world = World(seed, database=database)
    logging.basicConfig(stream=sys.stdout, format="            %(message)s", level=logging.WARNING)
    history = world.run()
    violations = check(history)
    for line in tell(history):
        print(line)
    for violation in violations:
        print(violation)
    print(f"{len(violations)} violations")
    return 1 if violations else 0


def _many(seeds: range, database: str, jobs: int) -> int:
    started = time.perf_counter()
    failures: list[Failure] = []
    coverage = Coverage()
    pieces = [seeds[start : start + PIECE] for start in range(0, len(seeds), PIECE)]
    with ProcessPoolExecutor(jobs) as pool:
        for number, (found, seen) in enumerate(pool.map(runner.run_many, pieces, [database] * len(pieces)), 1):
            failures += found
            coverage.merge(seen)
            for failure in found:
                print(failure, flush=True)
            if sys.stderr.isatty():
                print(f"\r{number * PIECE} seeds, {len(failures)} failed", end="", file=sys.stderr, flush=True)
    elapsed_s = time.perf_counter() - started
    print(f"{len(seeds)} seeds in {elapsed_s:.1f} s ({len(seeds) / elapsed_s:.1f}/s), {len(failures)} failed")
    missing = coverage.missing() if len(seeds) >= ENOUGH_FOR_COVERAGE else []
    for line in missing:
        print(line)
    return 1 if failures or missing else 0


def _cover(seeds: range, database: str, jobs: int) -> int:
    """Takes the seed that sees the most of what is missing, again and again."""
    with ProcessPoolExecutor(jobs) as pool:
        found = pool.map(runner.run_many, [[seed] for seed in seeds], [database] * len(seeds))
        seen = {seed: coverage for seed, (_, coverage) in zip(seeds, found, strict=True)}
    chosen: list[int] = []
    missing = Coverage().missing()
    while missing:
        left = {seed: _union([*chosen, seed], seen).missing() for seed in seeds}
        best = min(left, key=lambda seed: len(left[seed]))
        if len(left[best]) == len(missing):
            break
        chosen.append(best)
        missing = left[best]
    print(chosen)
    for line in missing:
        print(line)
    return 1 if missing else 0


def _union(seeds: list[int], seen: dict[int, Coverage]) -> Coverage:
    union = Coverage()
    for seed in seeds:
        union.merge(seen[seed])
    return union


def _planted(database: str) -> int:
    missed = 0
    for bug in planted.bugs(database):
        catch = planted.hunt(bug, database=database)
        missed += catch is None
        print(f"{bug.name:58} {catch or 'NOT CAUGHT'}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
