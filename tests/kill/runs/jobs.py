"""The app: short bodies, and workflows of six shapes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from rota import App, Context, Fixed
from tests.support.workflows import add_workflow

PATIENT = Fixed(attempts=9, delay=0.05)
PAID = "paid"
UNDONE = Path("undone.txt")
"""In the folder of the workers: a line for each call of an undo, with its idempotency key and the result to undo."""
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


@app.job(retry=1)
def refuse(x: int) -> None:
    raise ValueError("refused")


@app.job(retry=PATIENT)
def give_back(x: int, context: Context) -> None:
    line = os.open(UNDONE, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(line, f"{context.id} {x}\n".encode())
    os.close(line)
    time.sleep(0.03)  # sleep: a worker may be killed after the effect and before the end


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
    "patient": add_workflow(
        app,
        "patient",
        FIRST,
        {"id": "s", "sleep": 0.3, "after": ["a"]},
        {"id": "ok", "approve": {"text": "Go on?", "timeout": "10m", "required": True}, "after": ["s"]},
        {
            "id": "e",
            "event": {"names": [PAID], "subject": {"$text": "order {x}", "x": ref("input.x")}, "timeout": "10m"},
            "after": ["ok"],
        },
        {"id": "t", "job": "total", "with": {"x": [ref("a"), ref("e.payload.amount")]}},
        result=ref("t"),
    ),
    "saga": add_workflow(
        app,
        "saga",
        {**FIRST, "undo": "give_back"},
        {"id": "m", "job": "quick", "map": [1, 2, 3], "as": "x", "after": ["a"], "undo": "give_back"},
        {"id": "ok", "approve": {"text": "Pay?", "timeout": "10m", "required": True}, "after": ["m"]},
        {"id": "f", "job": "refuse", "with": {"x": ref("input.x")}, "after": ["ok"]},
    ),
}
ANSWERED = ("patient", "saga")
"""The shapes that wait for an answer."""


def expected(shape: str, x: int) -> int:
    match shape:
        case "wide":
            return sum(range(700))
        case "patient":
            return 3 * x
        case "nested":
            return sum(8 * one for one in range(x))
        case _:
            return 8 * x


def undone(x: int) -> list[int]:
    """The results that a saga has undone in the end."""
    return [2 * x, 1, 2, 3]
