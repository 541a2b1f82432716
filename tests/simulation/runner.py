"""Runs seeds, one or many, and tells what was wrong with them."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.simulation.checker import Violation, check
from tests.simulation.coverage import Coverage
from tests.simulation.history import History
from tests.simulation.world import Scale, World


@dataclass(frozen=True, slots=True)
class Failure:
    """A seed that broke something."""

    seed: int
    database: str
    violations: list[Violation]

    def __str__(self) -> str:
        again = f"python -m tests.simulation --database {self.database} --seed {self.seed}"
        lines = [f"seed {self.seed} (replay it with: {again})"]
        return "\n".join([*lines, *(f"  {violation}" for violation in self.violations)])


def run(
    seed: int, database: str = "sqlite", *, runs: bool = False, scale: Scale | None = None
) -> tuple[History, list[Violation]]:
    """One run and what is wrong with it; with `runs`, in a world with workflows and events."""
    with quiet():
        history = World(seed, scale, database=database, runs=runs).run()
    return history, check(history)


def run_many(seeds: Iterable[int], database: str = "sqlite") -> tuple[list[Failure], Coverage]:
    failures, coverage = [], Coverage()
    for seed in seeds:
        history, violations = run(seed, database)
        coverage.add(history)
        if violations:
            failures.append(Failure(seed, database, violations))
    return failures, coverage


@contextmanager
def quiet() -> Iterator[None]:
    """The engine logs much here that is not needed."""
    log = logging.getLogger("rota")
    before = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(before)


def digest(history: History) -> str:
    """The same for two runs only if they did the same things at the same times.

    PostgreSQL may change the rows of one operation in any order, as its plan has it.
    """
    told = [(one.name, one.at, one.now, one.caller, sorted(map(repr, one.changes))) for one in history.operations]
    return hashlib.sha256(repr((told, history.bodies, history.effects, history.submissions)).encode()).hexdigest()
