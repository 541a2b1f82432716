"""Prefect 3 with a server of its own. A flow and its tasks run in the process that calls it, as its tutorial shows."""

from __future__ import annotations

import asyncio

from prefect import flow, task  # type: ignore[import-not-found]


@task
def echo(number: int) -> int:
    return number


@task
async def echo_async(number: int) -> int:
    return number


@task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@flow
def in_turn(number: int, steps: int) -> int:
    for _ in range(steps):
        number = echo(number)
    return number


@flow
def fanned(count: int) -> int:
    return int(total(echo.map(range(count))))


@flow
async def small(number: int) -> int:
    for _ in range(3):
        number = await echo_async(number)
    return number


def chain(count: int) -> None:
    assert in_turn(7, count) == 7


def fan(count: int) -> None:
    assert fanned(count) == sum(range(count))


def many(count: int) -> None:
    async def go() -> list[int]:
        return list(await asyncio.gather(*(small(number) for number in range(count))))

    assert asyncio.run(go()) == list(range(count))
