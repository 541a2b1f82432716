"""`python -m tests.kill`: a run of any size, a table, and one line of JSON. Exit code 1 if anything went wrong."""

from __future__ import annotations

import sys

from tests.kill import command
from tests.kill.report import Plan, table
from tests.kill.run import Run


def main() -> int:
    plan = Plan()
    parser = command.parser("tests.kill", plan, __doc__)
    parser.add_argument(
        "--workers", type=int, default=plan.supervisors, dest="supervisors", metavar="N", help="supervisors"
    )
    parser.add_argument("--children", type=int, default=plan.children, help="worker processes of each supervisor")
    parser.add_argument(
        "--rate", type=float, default=plan.kills_per_s, dest="kills_per_s", metavar="R", help="kills per second"
    )
    return command.carry_out(parser, lambda given, folder: Run(Plan(**given), folder).run(), table)


if __name__ == "__main__":
    sys.exit(main())
