"""The workflows that are measured. In their own module, so that other workers do not build them."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from typing import Any, NamedTuple

from benchmarks import probe
from rota import App, Job, Workflow
from rota.workflow import sleep

VARIABLE = "BENCHMARKS_CHAIN"
"""The environment variable with the number of steps that the chain has."""
APP = "benchmarks.flows:app"
IN_TURN = 3
"""Steps of a small workflow."""
ASLEEP = 500
"""Steps of a dormant workflow that sleep, each with a step after it."""


class Flows(NamedTuple):
    """An app, its workflows, and a job that has a queue of its own."""

    app: App
    chain: Workflow[[int], int]
    fan: Workflow[[int], int]
    wide: Workflow[[int], None]
    small: Workflow[[int], int]
    dormant: Workflow[[int], None]
    stamp: Job[[int, float], None, Coroutine[Any, Any, None]]


def build(url: str | None = None) -> Flows:
    """The app on the database at `url`, or at ROTA_URL."""
    app = App("flows", url=url)

    @app.job
    async def numbers(count: int) -> list[int]:
        return list(range(count))

    @app.job
    async def echo(number: int) -> int:
        return number

    @app.job
    async def total(numbers: list[int]) -> int:
        return sum(numbers)

    @app.job(queue="beside")
    async def stamp(number: int, since: float) -> None:
        probe.current().note(number, since)

    def in_turn(number: int, steps: int) -> int:
        for _ in range(steps):
            number = echo.step(number)
        return number

    @app.workflow
    def chain(number: int) -> int:
        return in_turn(number, int(os.environ.get(VARIABLE, "10")))

    @app.workflow
    def fan(count: int) -> int:
        return total.step(echo.map(numbers.step(count)))

    @app.workflow
    def wide(count: int) -> None:
        echo.map(numbers.step(count))

    @app.workflow
    def small(number: int) -> int:
        return in_turn(number, IN_TURN)

    @app.workflow
    def dormant(number: int) -> None:
        for _ in range(ASLEEP):
            echo.after(sleep("30d")).step(number)

    return Flows(app, chain, fan, wide, small, dormant, stamp)


app = build().app
