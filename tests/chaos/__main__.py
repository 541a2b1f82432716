"""`python -m tests.chaos`: a run of any length, a table, and one line of JSON. Exit code 1 if anything went wrong."""

from __future__ import annotations

import sys

from tests.chaos.report import Plan, table
from tests.chaos.run import Run
from tests.kill import command


def main() -> int:
    plan = Plan()
    parser = command.parser("tests.chaos", plan, __doc__)
    parser.add_argument(
        "--rate", type=float, default=plan.blows_per_s, dest="blows_per_s", metavar="R", help="blows per second"
    )
    parser.add_argument(
        "--pace",
        type=float,
        default=plan.pace_s,
        dest="pace_s",
        metavar="S",
        help="seconds between two calls of an enqueuer",
    )
    return command.carry_out(parser, lambda given, folder: Run(Plan(**given), folder).run(), table)


if __name__ == "__main__":
    sys.exit(main())
