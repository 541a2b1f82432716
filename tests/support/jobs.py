"""The app that workers under test run. Its jobs tell a journal what happens to them, and wait at gates.

A journal is a file of lines, a gate is a file that may appear; both are in the folder JOURNAL names. Every line is
written with one call, so that lines of several processes do not mix.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from rota import App, Context, Custom, Exponential, FailForGood, Fixed, Linear, RetryIn, Snooze, Unique
from rota.sdk.app import registry_of
from rota.store.port import Tx
from rota.store.sqlite.store import SqliteStore
from rota.workflow import this_run
from tests.support import rude_jobs

JOURNAL = "ROTA_TESTS_JOURNAL"
BAD_RESULTS: dict[str, Any] = {
    "nan": math.nan,
    "infinity": [1, {"a": math.inf}],
    "nul": "a\x00b",
    "surrogate": {"a": "\ud800"},
    "object": object(),
    "circle": [],
    "large": "x" * 17_000_000,
    "deep": 0,
}
BAD_RESULTS["circle"].append(BAD_RESULTS["circle"])
for _ in range(500):
    BAD_RESULTS["deep"] = [BAD_RESULTS["deep"]]


class Mute(Exception):
    """An exception whose own text fails."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def note(*words: object) -> None:
    path = Path(os.environ[JOURNAL]) / "journal"
    line = " ".join(str(word) for word in words) + "\n"
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, line.encode())
    os.close(fd)


def is_open(gate: str) -> bool:
    return (Path(os.environ[JOURNAL]) / gate).exists()


def declare(app: App) -> None:
    """Declares every job; the tests do it on an app of their own to enqueue them."""
    _declare_plain(app)
    _declare_waiting(app)
    _declare_deadly(app)
    _declare_failing(app)
    _declare_retried(app)
    _declare_isolated(app)
    _declare_telling(app)
    _declare_picky(app)
    _declare_steps(app)
    rude_jobs.declare(app)


def _declare_picky(app: App) -> None:
    app.breaker("door", failures=3, wait=0.5)

    @app.job(breaker="door", retry=Fixed(attempts=50, delay=0.01))
    async def knock(ctx: Context, gate: str) -> None:
        note("knocked", ctx.id, ctx.fence, os.getpid())
        if not is_open(gate):
            raise ConnectionError("nobody is there")

    @app.job(affinity="customer", affinity_wait="1m")
    def serve(ctx: Context, customer: str) -> int:
        return os.getpid()


def _declare_steps(app: App) -> None:
    @app.job
    def place(ctx: Context, value: int) -> Any:
        return ctx.run

    @app.job(isolation="process")
    async def place_alone(ctx: Context, value: int) -> Any:
        return ctx.run

    @app.workflow
    def places(values: list[int]) -> Any:
        return [place.options(name="first").step(0), place_alone.map(values), this_run.id, this_run.scheduled_for]


def _declare_plain(app: App) -> None:
    @app.job
    def echo(ctx: Context, value: Any) -> Any:
        note("ran", ctx.id, ctx.fence, os.getpid())
        return value

    @app.job
    async def echo_async(ctx: Context, value: Any) -> Any:
        note("ran", ctx.id, ctx.fence, os.getpid())
        return value

    @app.job(queue="mail")
    def mail() -> str:
        return "sent"

    @app.job(retry=None)
    def changed(b: str) -> str:
        return b

    @app.job(name="return", retry=None)
    def return_bad(kind: str) -> Any:
        return BAD_RESULTS[kind]

    @app.job(retry=None)
    async def return_bad_async(kind: str) -> Any:
        return BAD_RESULTS[kind]


def _declare_waiting(app: App) -> None:
    @app.job(retry=None)
    def fan_out(first: int, last: int, queue: str, on_conflict: str) -> int:
        """Enqueues many of another job, each once."""
        echo = app.jobs["echo"].options(unique=Unique(on_conflict=on_conflict), queue=queue)
        return sum(x.created for x in echo.enqueue_many(range(first, last)))

    @app.job(retry=None)
    def write_for(ctx: Context, seconds: float) -> str:
        """Holds the write lock of a SQLite file and keeps SQLite at work, without the interpreter."""
        store, until = registry_of(app).connection.store(), time.monotonic() + seconds
        assert isinstance(store, SqliteStore)
        connection = store._connection
        numbers = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 300000)"

        def write(tx: Tx) -> None:
            note("started", ctx.id, ctx.fence, os.getpid())
            while time.monotonic() < until:
                connection.execute(f"{numbers} SELECT count(*) FROM n").fetchone()

        store.transact(write)
        return "done"

    @app.job(retry=None)
    def gated(ctx: Context, gate: str) -> str:
        """Waits for its gate, and looks whether it was asked to stop."""
        note("started", ctx.id, ctx.fence, os.getpid())
        while not is_open(gate):
            if ctx.wait_cancelled(0.01):
                note("told", ctx.id, ctx.fence, os.getpid())
                raise InterruptedError("asked to stop")
        note("ended", ctx.id, ctx.fence, os.getpid())
        return "done"

    @app.job(retry=None)
    async def gated_async(ctx: Context, gate: str) -> str:
        note("started", ctx.id, ctx.fence, os.getpid())
        try:
            while not is_open(gate):  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # sleep: a gate is a file, which sends no signal.
        except asyncio.CancelledError:
            note("told", ctx.id, ctx.fence, os.getpid())
            raise
        note("ended", ctx.id, ctx.fence, os.getpid())
        return "done"

    @app.job(retry=None)
    async def cleans_up_badly(ctx: Context, gate: str) -> str:
        """Raises another exception than the one by which it was asked to stop."""
        try:
            return await app.jobs["gated_async"](ctx, gate)  # type: ignore[no-any-return]
        except asyncio.CancelledError:
            raise RuntimeError("while cleaning up") from None

    @app.job(retry=None, timeout="0.3s")
    async def slow_async(ctx: Context) -> None:
        note("started", ctx.id, ctx.fence, os.getpid())
        await asyncio.Event().wait()

    @app.job(retry=None, timeout="0.3s")
    def slow_cooperative(ctx: Context) -> None:
        while not ctx.wait_cancelled(10):
            pass
        raise InterruptedError

    @app.job(retry=None, timeout="0.3s")
    def deaf(ctx: Context, gate: str) -> str:
        """A thread that hears nothing until its gate opens."""
        note("started", ctx.id, ctx.fence, os.getpid())
        while not is_open(gate):
            time.sleep(0.05)  # sleep: it is meant to be deaf.
        note("ended", ctx.id, ctx.fence, os.getpid())
        return "too late"

    @app.job(retry=Fixed(attempts=50, delay=0.05), total_timeout="0.5s")
    async def never_in_total(ctx: Context) -> None:
        note("started", ctx.id, ctx.fence, os.getpid())
        raise ValueError("again")

    @app.job(retry=None, total_timeout="0.3s")
    async def too_long_in_total() -> None:
        await asyncio.Event().wait()


def _declare_deadly(app: App) -> None:
    @app.job(retry=None)
    def hold_interpreter(ctx: Context, seconds: int) -> str:
        """A call into C that does not give the interpreter back."""
        note("started", ctx.id, ctx.fence, os.getpid())
        ctypes.PyDLL(None).sleep(seconds)
        return "done"

    @app.job(retry=None)
    def size(text: str) -> int:
        return len(text)

    @app.job(retry=None)
    def read_input() -> str:
        return sys.stdin.readline()

    @app.job(retry=None)
    def leave_a_daemon(ctx: Context, gate: str) -> str:
        """A process in a session of its own, with copies of all that its parent has open."""
        if os.fork() == 0:
            os.setsid()
            note("daemon", ctx.id, ctx.fence, os.getpid())
            while not is_open(gate):
                time.sleep(0.05)  # sleep: it is meant to stay.
            os._exit(0)
        note("started", ctx.id, ctx.fence, os.getpid())
        threading.Event().wait()
        return "never"

    @app.job(retry=None)
    def hold_turn(ctx: Context) -> str:
        """Gets its process stuck in the middle of a write, the first time."""
        note("started", ctx.id, ctx.fence, os.getpid())
        if ctx.fence == 1:
            registry_of(app).connection.store().transact(lambda tx: ctypes.PyDLL(None).sleep(600))
        return "done"

    @app.job(retry=None)
    async def block_loop(ctx: Context, seconds: float) -> str:
        note("started", ctx.id, ctx.fence, os.getpid())
        time.sleep(seconds)  # noqa: ASYNC251 # sleep: blocks the event loop, as bad code does.
        return "done"

    @app.job(retry=None)
    def die(ctx: Context) -> None:
        note("started", ctx.id, ctx.fence, os.getpid())
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()

    @app.job(retry=None)
    def leave(ctx: Context, how: str) -> None:
        """Ends its process as libraries do, with a code that looks as if it had left in order."""
        note("started", ctx.id, ctx.fence, os.getpid())
        if how == "exec":
            os.execv("/bin/true", ["true"])
        elif how == "exec for long":
            if ctx.fence > 1:
                return
            os.execv("/bin/sleep", ["sleep", "1000"])
        elif how == "exit in C":
            ctypes.CDLL(None).exit(0)
        os._exit(int(how))

    @app.job(retry=None)
    def die_once(ctx: Context) -> str:
        note("started", ctx.id, ctx.fence, os.getpid())
        if ctx.fence == 1:
            os._exit(9)
        return f"start {ctx.fence}"


def _declare_failing(app: App) -> None:
    errors: dict[str, Any] = {
        "plain": lambda: ValueError("boom"),
        "mute": Mute,
        "nul": lambda: ValueError("a\x00b"),
        "surrogate": lambda: ValueError("a\ud800b"),
        "large": lambda: ValueError("x" * 10_000_000),
        "exit": lambda: SystemExit(3),
        "interrupt": KeyboardInterrupt,
        "cancelled": asyncio.CancelledError,
        "generator": GeneratorExit,
        "stop": StopIteration,
        "group": lambda: ExceptionGroup("several", [ValueError("a\x00"), KeyError("b")]),
    }

    def deep(levels: int, kind: str) -> None:
        if levels:
            deep(levels - 1, kind)
        raise errors[kind]()

    @app.job(name="raise", retry=None)
    def raise_(kind: str, levels: int = 0) -> None:
        deep(levels, kind)

    @app.job(retry=None)
    async def raise_async(kind: str, levels: int = 0) -> None:
        deep(levels, kind)


def _declare_retried(app: App) -> None:
    policies: dict[str, Any] = {
        "none": None,
        "fixed": Fixed(attempts=3, delay=0.02),
        "linear": Linear(attempts=3, step=0.02),
        "exponential": Exponential(attempts=3, base=0.02),
        "custom": Custom(attempts=10, delay_for=lambda attempt, error: 0.02 if attempt < 3 else None),
        "callable": lambda attempt, error: "20ms" if attempt < 3 else None,
        "only": Fixed(attempts=3, delay=0.02, only=(OSError,)),
        "never": Fixed(attempts=3, delay=0.02, never=(ValueError,)),
        "broken": lambda attempt, error: 1 / 0,
    }
    for name, policy in policies.items():

        @app.job(name=f"retry_{name}", retry=policy)
        def fail(ctx: Context) -> None:
            note("tried", ctx.id, ctx.fence, ctx.attempt)
            raise ValueError(f"attempt {ctx.attempt}")

    @app.job(retry=Fixed(attempts=2, delay=1000))
    def signals(ctx: Context, kind: str) -> str:
        note("tried", ctx.id, ctx.fence, ctx.attempt)
        if ctx.fence > 1:
            return f"attempt {ctx.attempt}"
        asked: dict[str, Exception] = {
            "retry": RetryIn(0.02, "busy"),
            "retry badly": RetryIn("soon"),
            "fail": FailForGood("no hope"),
            "snooze": Snooze("20ms"),
            "snooze badly": Snooze(-1),
        }
        raise asked[kind]


def _declare_isolated(app: App) -> None:
    @app.job(retry=None, timeout="1s")
    async def holds_the_loop(ctx: Context) -> None:
        """Computes in an async function, and so keeps the timer from being heard."""
        note("started", ctx.id, ctx.fence, os.getpid())
        while True:
            pass

    @app.job(isolation="process")
    def alone(ctx: Context, value: Any) -> Any:
        note("ran", ctx.id, ctx.fence, os.getpid())
        return [value, os.getpid()]

    @app.job(isolation="process", retry=None)
    async def alone_async(ctx: Context, gate: str) -> str:
        note("started", ctx.id, ctx.fence, os.getpid())
        try:
            while not is_open(gate):  # noqa: ASYNC110
                await asyncio.sleep(0.01)  # sleep: a gate is a file, which sends no signal.
        except asyncio.CancelledError:
            note("told", ctx.id, ctx.fence, os.getpid())
            raise
        return "done"

    @app.job(isolation="process", retry=None, timeout="0.5s", grace="0.2s")
    def alone_deaf(ctx: Context) -> None:
        """Burns a core, and catches whatever would stop it."""
        note("started", ctx.id, ctx.fence, os.getpid())
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass

    @app.job(isolation="process", retry=None, timeout="0.5s")
    def tidy(ctx: Context) -> None:
        note("started", ctx.id, ctx.fence, os.getpid())
        try:
            while True:
                pass
        finally:
            note("cleaned", ctx.id, ctx.fence, os.getpid())

    @app.job(isolation="process", retry=None, memory="200MB")
    def eats(ctx: Context) -> None:
        kept = []
        while True:
            kept.append(bytearray(5_000_000))

    @app.job(isolation="process")
    def crashes(ctx: Context, how: str) -> None:
        note("started", ctx.id, ctx.fence, os.getpid())
        print("the last line before the end", flush=True)
        if how == "exit":
            os._exit(9)
        if how == "fault":
            ctypes.string_at(0)
        os.kill(os.getpid(), signal.SIGKILL)

    @app.job(isolation="process", retry=None, timeout="0.7s", grace="0.2s")
    def leaves_behind(ctx: Context, *, returns: bool) -> None:
        """Starts a process in a session of its own, which would outlive it."""
        command = [
            sys.executable,
            "-c",
            "import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(600)",
        ]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        note("left", ctx.id, ctx.fence, int(child.stdout.readline()))
        while not returns:
            pass

    app.command("shell", ["sh", "-c", "{script}"], result="text", retry=None, grace="0.5s")
    app.command("shell_for_a_moment", ["sh", "-c", "{script}"], retry=None, timeout="0.5s", grace="0.2s")


def _declare_telling(app: App) -> None:
    isolations: tuple[str | None, ...] = (None, "process")
    for isolation in isolations:
        prefix = "alone_" if isolation else ""

        @app.job(name=f"{prefix}steps", isolation=isolation, retry=Fixed(attempts=5, delay=0.01))
        def steps(ctx: Context) -> list[Any]:
            reached = ctx.restored or []
            ctx.checkpoint([*reached, ctx.fence])
            if len(reached) < 2:
                raise ValueError("not yet")
            return [*reached, ctx.fence]

        @app.job(name=f"{prefix}says", isolation=isolation, retry=None)
        def says(ctx: Context, gate: str) -> None:
            print("to stdout")
            print("to stderr", file=sys.stderr)
            logging.getLogger("shop").warning("to a logger")
            ctx.log("by ctx")
            ctx.progress(3, 4, "nearly")
            note("started", ctx.id, ctx.fence, os.getpid())
            while not is_open(gate):
                if ctx.wait_cancelled(0.01):
                    raise InterruptedError
            print("without an end", end="")

        @app.job(name=f"{prefix}says_much", isolation=isolation, retry=None)
        def says_much(megabytes: int) -> None:
            line = "x" * 99
            for number in range(megabytes * 10_000):
                print(number, line)

        @app.job(name=f"{prefix}silent", isolation=isolation, retry=None, progress_timeout="0.5s")
        def silent(ctx: Context, times: int) -> str:
            for number in range(times):
                ctx.progress(number)
                ctx.wait_cancelled(0.2)
            while not ctx.wait_cancelled(0.01):
                pass
            raise InterruptedError

        @app.job(name=f"{prefix}silent_soon", isolation=isolation, retry=None, progress_timeout="2s", timeout="3.8s")
        def silent_soon(ctx: Context) -> None:
            ctx.progress(1)
            while not ctx.wait_cancelled(10):
                pass
            raise InterruptedError

        @app.job(name=f"{prefix}turns", isolation=isolation, retry=None, time_slice="50ms")
        def turns(ctx: Context) -> list[int]:
            """Three turns, of which each but the last is longer than the slice."""
            reached: list[int] = ctx.restored or []
            if len(reached) < 2:
                ctx.wait_cancelled(0.06)
            ctx.checkpoint([*reached, ctx.fence])
            return [*reached, ctx.fence]

        @app.job(name=f"{prefix}parent", isolation=isolation, retry=None)
        def parent(ctx: Context, gate: str) -> str:
            note("started", ctx.id, ctx.fence, os.getpid())
            while not is_open(gate):
                time.sleep(0.01)  # sleep: a gate is a file, which sends no signal.
            return ctx.enqueue(app.jobs["echo"], "child").id

        @app.job(name=f"{prefix}headers", isolation=isolation, retry=None)
        def headers(ctx: Context, generations: int) -> list[str]:
            """Its own headers, and the execution that has those which it passes on."""
            if not generations:
                return [ctx.headers["tenant"], ctx.headers["level"]]
            child = app.jobs["headers"].options(headers={"level": str(generations)})
            return [ctx.headers["tenant"], ctx.enqueue(child, generations - 1).id]

    @app.job(retry=None)
    async def says_async(word: str, gate: str) -> None:
        print(word, "one")
        while not is_open(gate):  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # sleep: a gate is a file, which sends no signal.
        print(word, "two")

    @app.job(retry=None)
    def keeps(ctx: Context) -> str:
        """Resumes from its checkpoint after a drain."""
        if ctx.restored is not None:
            return f"from {ctx.restored}"
        note("started", ctx.id, ctx.fence, os.getpid())
        while not ctx.wait_cancelled(0.01):
            pass
        ctx.checkpoint(17)
        raise InterruptedError


app = App("engine")
declare(app)
