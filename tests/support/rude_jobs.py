"""Jobs that treat the process that they run in as if it were theirs: they fork it, change it and leave things in it."""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import signal
import sys
import tempfile
import threading
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from rota import App, Context

_hoard: list[bytearray] = []
_found: ContextVar[list[str]] = ContextVar("found")
_found.set(["import"])
ENDS: dict[str, int] = {"return": 0, "raise": 1, "exit": 7, "exit with a text": 1}
"""How a copy of a process may leave the function, and the exit code that Python has for it."""


def declare(app: App) -> None:
    _declare_forking(app)
    _declare_spoiling(app)
    _declare_late(app)
    _declare_leaking(app)

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

    for prefix, isolation in (("", None), ("alone_", "process")):

        @app.job(name=f"{prefix}forks_and_waits", isolation=isolation, retry=None)
        def forks_and_waits(how: str) -> int:
            return _leave(how, os.fork())

    @app.job(retry=None)
    async def forks_and_waits_async(how: str) -> int:
        return _leave(how, os.fork())


def _leave(how: str, copy: int) -> int:
    """In the copy: leaves the function like that. In the original: returns the exit code of the copy."""
    if copy:
        return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
    match how:
        case "raise":
            raise LookupError("in the copy")
        case "exit":
            raise SystemExit(7)
        case "exit with a text":
            raise SystemExit("the copy says so")
        case _:
            return 0


def _declare_leaking(app: App) -> None:
    def leaks() -> list[str]:
        """Returns what it finds in a context variable, and leaves something there."""
        found = _found.get()
        _found.set([*found, "job"])
        return found

    app.job(name="leaks", retry=None)(leaks)
    app.job(name="alone_leaks", isolation="process", retry=None)(leaks)

    @app.job(retry=None)
    async def leaks_async() -> list[str]:
        return leaks()

    @app.job(isolation="process", retry=None)
    async def alone_leaks_async() -> list[str]:
        return leaks()


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

        @app.job(name=f"{prefix}says_farewell", isolation=isolation, retry=None)
        def says_farewell(ctx: Context) -> int:
            """Registers an atexit handler, and leaves a thread for which the interpreter would wait forever."""
            from tests.support.jobs import note  # lazy: that declares these

            atexit.register(note, "farewell", ctx.id, ctx.fence, os.getpid())
            if not ctx.job.startswith("alone_"):
                threading.Thread(target=threading.Event().wait).start()
            return os.getpid()

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
