"""The command line of a run that kills: options, a table, one line of JSON. Exit code 1 if anything went wrong."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec


class Shown(Protocol):
    """What all reports have."""

    @property
    def problems(self) -> list[str]: ...


def parser(name: str, plan: Any, words: str | None) -> argparse.ArgumentParser:
    """With what all such runs may be asked for. Options go by the names of the plan's fields."""
    made = argparse.ArgumentParser(prog=f"python -m {name}", description=words)
    made.add_argument("--database", choices=["sqlite", "postgres"], default=plan.database, help="what it runs on")
    made.add_argument("--kills", type=int, default=plan.kills, help="fewer SIGKILLs than these are a failure")
    made.add_argument("--minutes", type=float, default=plan.minutes, help="how long it may go on killing")
    made.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="chooses faults and victims")
    made.add_argument("--lease", type=float, default=plan.lease_s, dest="lease_s", metavar="S", help="seconds")
    made.add_argument("--keep", action="store_true", help="keep the folder with database, journals and logs")
    return made


R = TypeVar("R", bound=Shown)


def carry_out(
    parser: argparse.ArgumentParser, run: Callable[[dict[str, Any], Path], R], table: Callable[[R], str]
) -> int:
    given = vars(parser.parse_args())
    keep = given.pop("keep")
    folder = Path(tempfile.mkdtemp(prefix="rota-run-"))
    report = run(given, folder)
    print(table(report))
    print(msgspec.json.encode(report).decode())
    if keep or report.problems:
        print(f"kept: {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return 1 if report.problems else 0
