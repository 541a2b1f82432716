"""Celery's canvas on Redis, which also keeps the results: two processes, other settings as they are by default."""

from __future__ import annotations

import os

import celery  # type: ignore[import-not-found]

app = celery.Celery("canvas", broker=os.environ["PEER_URL"], backend=os.environ["PEER_URL"])
app.conf.update(broker_connection_retry_on_startup=True)


@app.task
def echo(number: int) -> int:
    return number


@app.task
def total(numbers: list[int]) -> int:
    return sum(numbers)


def chain(count: int) -> None:
    assert _in_turn(7, count).apply_async().get() == 7


def fan(count: int) -> None:
    assert celery.chord((echo.s(number) for number in range(count)), total.s())().get() == sum(range(count))


def many(count: int) -> None:
    runs = [_in_turn(number, 3).apply_async() for number in range(count)]
    assert [run.get() for run in runs] == list(range(count))


def _in_turn(number: int, steps: int) -> celery.chain:
    return celery.chain(echo.s(number), *[echo.s() for _ in range(steps - 1)])
