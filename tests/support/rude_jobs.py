"""Jobs that treat the process that they run in as if it were theirs: they fork it, change it and leave things in it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from rota import App, Context

_hoard: list[bytearray] = []


def declare(app: App) -> None:
    _declare_forking(app)
    _declare_spoiling(app)
    _declare_late(app)

    @app.job(isolation="process", retry=None, total_timeout="0.5s")
    def alone_in_total() -> None:
        """Has no time to wait for a process."""

    @app.job(retry=None)
    def die_by(ctx: Context, number: int) -> str:
        if ctx.fence > 1:
            return f"start {ctx.fence}"
        os.kill(os.getpid(), number)
        raise AssertionError("the signal does not kill")


def _declare_forking(app: App) -> None:
    """The copy returns from the function, too."""

    @app.job(retry=None)
    def forks(ctx: Context) -> list[int]:
        return [os.fork(), os.getpid()]

    @app.job(retry=None)
    async def forks_async(ctx: Context) -> list[int]:
        return [os.fork(), os.getpid()]

    @app.job(isolation="process", retry=None)
    def alone_forks(ctx: Context) -> list[int]:
        return [os.fork(), os.getpid()]


def _declare_spoiling(app: App) -> None:
    @app.job(isolation="process", retry=None)
    def spoils(what: str) -> int:
        match what:
            case "directory":
                folder = tempfile.mkdtemp()
                os.chdir(folder)
                shutil.rmtree(folder)
            case "mask":
                os.umask(0o777)
            case "stdout":
                sys.stdout.close()
            case "stream":
                sys.stdout = sys.stderr = None
            case "descriptors":
                os.closerange(0, 3)
            case "alarm":
                signal.setitimer(signal.ITIMER_REAL, 0.2)
            case "deaf":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            case _:
                raise ValueError(what)
        return os.getpid()

    @app.job(isolation="process", retry=None)
    def decent(seconds: float = 0) -> list[Any]:
        print("hello")
        mask = os.umask(0o22)
        os.umask(mask)
        threading.Event().wait(seconds)
        return [str(Path.cwd()), mask, os.getpid()]

    @app.job(isolation="process", retry=None, memory="200MB")
    def hoards(megabytes: int, *, keeps: bool) -> int:
        held = bytearray(b"x") * (megabytes * 2**20)
        if keeps:
            _hoard.append(held)
        threading.Event().wait(0.5)
        return os.getpid()


def _declare_late(app: App) -> None:
    for prefix, isolation in (("", None), ("alone_", "process")):

        @app.job(name=f"{prefix}speaks_late", isolation=isolation, retry=None)
        def speaks_late(ctx: Context, gate: str, words: str) -> None:
            from tests.support.jobs import is_open, note  # lazy: that declares these

            def speak() -> None:
                while not is_open(gate):
                    threading.Event().wait(0.01)
                for _ in range(3):
                    ctx.log("too late")
                ctx.progress(1, 2, "too late")
                ctx.checkpoint("too late")
                note("spoke", ctx.id, ctx.fence, os.getpid())

            ctx.log(words)
            threading.Thread(target=speak, daemon=True).start()

        @app.job(name=f"{prefix}says_odd_things", isolation=isolation, retry=None)
        def says_odd_things(ctx: Context, size: int) -> None:
            ctx.log("a\ud800b")
            ctx.log("x" * size)
            ctx.log("c\0d")
            ctx.progress(1, note="e\udfff" + "y" * size)

    @app.job(isolation="process", retry=None)
    async def alone_leaves_tasks(gate: str) -> None:
        from tests.support.jobs import is_open  # lazy: that declares these

        async def go_on() -> None:
            while not is_open(gate):  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # sleep: a gate is a file
            print("too late")

        asyncio.get_running_loop().create_task(go_on())

    @app.job(isolation="process", retry=None)
    async def alone_sleeps(seconds: float) -> int:
        await asyncio.sleep(seconds)
        return os.getpid()
