"""The app: short bodies, and workflows of four shapes."""

from __future__ import annotations

import time
from typing import Any

from rota import App, Fixed
from tests.support.workflows import add_workflow

PATIENT = Fixed(attempts=9, delay=0.05)
app = App("kill")


def ref(path: str) -> dict[str, str]:
    return {"$": path}


@app.job(retry=PATIENT)
def twice(x: int) -> int:
    time.sleep(0.03)  # sleep: stands for the job's own work
    return 2 * x


@app.job(retry=PATIENT)
def numbers(x: int) -> list[int]:
    return list(range(x))


@app.job(retry=PATIENT)
def total(x: list[int]) -> int:
    return sum(x)


@app.job(retry=PATIENT)
def quick(x: int) -> int:
    return x


FIRST = {"id": "a", "job": "twice", "with": {"x": ref("input.x")}}
SHAPES: dict[str, Any] = {
    "chain": add_workflow(
        app,
        "chain",
        FIRST,
        {"id": "b", "job": "twice", "with": {"x": ref("a")}},
        {"id": "c", "job": "twice", "with": {"x": ref("b")}},
        result=ref("c"),
    ),
    "diamond": add_workflow(
        app,
        "diamond",
        FIRST,
        {"id": "b", "job": "twice", "with": {"x": ref("a")}},
        {"id": "c", "job": "twice", "with": {"x": ref("a")}},
        {"id": "d", "job": "total", "with": {"x": [ref("b"), ref("c")]}},
        result=ref("d"),
    ),
    "wide": add_workflow(
        app,
        "wide",
        {"id": "n", "job": "numbers", "with": {"x": 700}},
        {"id": "m", "job": "quick", "map": ref("n"), "as": "x"},
        {"id": "t", "job": "total", "with": {"x": ref("m")}},
        result=ref("t"),
    ),
    "nested": add_workflow(
        app,
        "nested",
        {"id": "n", "job": "numbers", "with": {"x": ref("input.x")}},
        {"id": "m", "workflow": "diamond", "map": ref("n"), "as": "x", "at_once": 3},
        {"id": "t", "job": "total", "with": {"x": ref("m")}},
        result=ref("t"),
    ),
}


def expected(shape: str, x: int) -> int:
    match shape:
        case "wide":
            return sum(range(700))
        case "nested":
            return sum(8 * one for one in range(x))
        case _:
            return 8 * x
