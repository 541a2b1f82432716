"""`python -m tests.ticking`: kills workers for a while, and reports the outcomes of the ticks."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.support.databases import fresh_database
from tests.ticking.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.ticking", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    arguments = parser.parse_args()
    url = fresh_database() if arguments.database == "postgres" else ""
    with tempfile.TemporaryDirectory() as folder:
        report = run(Path(folder), url, arguments.seconds, arguments.seed)
    print(report)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
