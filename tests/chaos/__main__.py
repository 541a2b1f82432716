"""`python -m tests.chaos`: a run of any length, a table, and one line of JSON. Exit code 1 if anything went wrong."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

import msgspec

from tests.chaos.report import Plan, table
from tests.chaos.run import Run


def main() -> int:
    plan = Plan()
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default=plan.database, help="what it runs on")
    parser.add_argument("--minutes", type=float, default=plan.minutes, help="how long the storm is to last")
    parser.add_argument("--kills", type=int, default=plan.kills, help="fewer SIGKILLs than these are a failure")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="chooses faults and victims")
    parser.add_argument("--lease", type=float, default=plan.lease_s, help="seconds")
    parser.add_argument("--rate", type=float, default=plan.blows_per_s, help="blows per second")
    parser.add_argument("--pace", type=float, default=plan.pace_s, help="seconds between two calls of an enqueuer")
    parser.add_argument("--keep", action="store_true", help="keep the folder with database, journals and logs")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rota-chaos-"))
    report = Run(
        Plan(
            database=given.database,
            minutes=given.minutes,
            kills=given.kills,
            seed=given.seed,
            lease_s=given.lease,
            blows_per_s=given.rate,
            pace_s=given.pace,
        ),
        folder,
    ).run()
    print(table(report))
    print(msgspec.json.encode(report).decode())
    if given.keep or report.problems:
        print(f"kept: {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
