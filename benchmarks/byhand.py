"""The work of an executor without Rota: no queue, no record, no cancel and no rescue."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import httpx

from benchmarks.errands import VARIABLE
from benchmarks.steady import percentile

Act = Callable[[], object]
AT_ONCE = 100
COMMAND = ["/bin/true"]


def nothing() -> None:
    """In another process."""


def pool() -> ProcessPoolExecutor:
    """A warm pool with as many processes as a worker would have, spawned as those are."""
    pool = ProcessPoolExecutor(max(2, os.cpu_count() or 2), get_context("spawn"))
    for ready in [pool.submit(nothing) for _ in range(AT_ONCE)]:
        ready.result()
    return pool


def medians_ms(acts: Mapping[str, Act], count: int) -> dict[str, float]:
    """The time of each kind, measured in turns, so that a busy moment affects all of them."""
    passed: dict[str, list[float]] = {name: [] for name in acts}
    for number in range(count + 1):
        for name, act in acts.items():
            began = time.perf_counter()
            act()
            if number:  # The first one may have something to open.
                passed[name].append(time.perf_counter() - began)
    return {name: percentile(found, 50) * 1e3 for name, found in passed.items()}


@contextlib.contextmanager
def act(kind: str) -> Iterator[Act]:
    """A function that does the work of one kind of executor once."""
    match kind:
        case "process":
            with pool() as processes:
                yield lambda: processes.submit(nothing).result()
        case "command":
            yield lambda: subprocess.run(COMMAND, check=True)
        case _:
            with httpx.Client() as client:
                yield lambda: client.post(os.environ[VARIABLE], json={}).raise_for_status()


def per_s(kind: str, count: int) -> float:
    """Calls per second of one kind, with the number at once that is fastest."""
    match kind:
        case "process":
            with pool() as processes:
                began = time.perf_counter()
                for ended in [processes.submit(nothing) for _ in range(count)]:
                    ended.result()
        case "command":
            with ThreadPoolExecutor(os.cpu_count() or 2) as threads:
                began = time.perf_counter()
                for _ in threads.map(lambda _: subprocess.run(COMMAND, check=True), range(count)):
                    pass
        case _:
            began = time.perf_counter()
            asyncio.run(_requests(count))
    return count / (time.perf_counter() - began)


async def _requests(count: int) -> None:
    left = iter(range(count))

    async def send() -> None:
        for _ in left:
            (await client.post(os.environ[VARIABLE], json={})).raise_for_status()

    async with httpx.AsyncClient() as client:
        await asyncio.gather(*(send() for _ in range(AT_ONCE)))
