"""An app whose jobs fork, close their connection, and leave threads in their process."""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rota import App, Context
from rota.domain.errors import UsageError

app = App("rude")
CONNECTION = 3
kept: list[Any] = []


def forked(does: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            does()
        finally:
            os._exit(0)
    return child


@app.job(isolation="process")
def pid() -> int:
    return os.getpid()


@app.job(isolation="process")
def hang_up() -> None:
    os.close(CONNECTION)
    time.sleep(600)  # sleep: it is ended.


@app.job(isolation="process")
def all_talk(ctx: Context, size: int, times: int) -> None:
    """The job and its copies, all at once."""
    text = "x" * size
    copies = [forked(lambda: ctx.log("\n".join([text] * times))) for _ in range(4)]
    for number in range(times):
        ctx.checkpoint([number, text])
    for copy in copies:
        os.waitpid(copy, 0)


@app.job(isolation="process")
def copy_keeps(ctx: Context, written: str) -> str:
    def keep() -> None:
        try:
            ctx.checkpoint(1)
        except UsageError as error:
            Path(written).write_text(str(error))

    os.waitpid(forked(keep), 0)
    return Path(written).read_text()


@app.job(isolation="process")
def copy_speaks(ctx: Context, written: str) -> str:
    """As a daemon does: it closes what is open, and what it opens then has the same numbers."""

    def speak() -> None:
        os.closerange(CONNECTION, 1024)
        file = os.open(written, os.O_CREAT | os.O_RDWR)
        assert file == CONNECTION
        os.write(file, b"mine")
        ctx.log("from the copy")

    os.waitpid(forked(speak), 0)
    return Path(written).read_text()


@app.job(isolation="process")
async def end_copy() -> int:
    reading, writing = os.pipe()

    def wait() -> None:
        os.write(writing, b"!")
        time.sleep(600)  # sleep: it is ended.

    copy = forked(wait)
    os.read(reading, 1)
    os.kill(copy, signal.SIGTERM)
    _, status = os.waitpid(copy, 0)  # noqa: ASYNC222
    return os.WTERMSIG(status)


@app.job(isolation="process")
async def wait_async(began: str, gate: str) -> int:
    Path(began).write_text(str(os.getpid()))
    while not Path(gate).exists():  # noqa: ASYNC110
        await asyncio.sleep(0.01)  # sleep: a gate is a file, which sends no signal.
    return os.getpid()


def talk() -> None:
    for _ in range(6000):
        print("still here")
        time.sleep(0.1)  # sleep: it runs for much longer than its job.


@app.job(isolation="process")
async def leave_thread(kind: str) -> int:
    match kind:
        case "thread":
            threading.Thread(target=talk, daemon=True).start()
        case "timer":
            kept.append(threading.Timer(600, os._exit, [3]))
            kept[-1].daemon = True
            kept[-1].start()
        case "busy executor":
            kept.append(ThreadPoolExecutor(1))
            kept[-1].submit(talk)
        case "executor":
            kept.append(ThreadPoolExecutor(2))
            kept[-1].submit(os.getpid).result()
        case "to_thread":
            await asyncio.to_thread(os.getpid)
        case "queue":
            kept.append(queue.Queue())
            threading.Thread(target=kept[-1].get, daemon=True).start()
        case "ended":
            threading.Thread(target=os.getpid).start()
        case _:
            raise ValueError(kind)
    return os.getpid()
