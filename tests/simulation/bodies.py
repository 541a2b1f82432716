"""Jobs of every character, and the world outside in which they leave effects.

The arguments of a body decide what it does, so the seed decides. Whatever succeeds has put exactly one fenced effect
outside and returns the fence it ran with, so the checker can tell whose result was stored.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from rota.domain import retry
from rota.domain.errors import FailForGood, RetryIn, Snooze
from rota.domain.lifecycle import Rules
from rota.executors.context import Context
from rota.executors.function import FunctionExecutor
from rota.executors.signature import Signature
from tests.simulation.faults import Fault, Weather
from tests.simulation.history import Body, Effect
from tests.simulation.loop import Process, VirtualLoop

MOST_RESULT_BYTES = 2000


class Hopeless(Exception):
    """An error that a job's policy calls permanent."""


def _patient(attempt: int, error: BaseException) -> float | None:
    return 0.2 * attempt if attempt < 3 else None


RULES: dict[str, Rules] = {
    "steady": Rules(retry=retry.Fixed(attempts=3, delay=0.3), timeout_s=30.0),
    "flaky": Rules(retry=retry.Exponential(attempts=4, base=0.5, cap=3.0), timeout_s=30.0),
    "doomed": Rules(retry=retry.Linear(attempts=3, step=0.4, cap=1.0)),
    "hopeless": Rules(retry=retry.Fixed(attempts=5, delay=0.1, never=(Hopeless,))),
    "once": Rules(retry=retry.NO_RETRY),
    "asked": Rules(retry=retry.Custom(attempts=10, delay_for=_patient)),
    "steered": Rules(retry=retry.Fixed(attempts=4, delay=5.0)),
    "slow": Rules(retry=retry.Fixed(attempts=3, delay=0.2), timeout_s=1.0),
    "tardy": Rules(retry=retry.Fixed(attempts=50, delay=0.3), total_timeout_s=3.0),
    "deaf": Rules(retry=retry.Fixed(attempts=2, delay=0.2), timeout_s=0.7),
    "long": Rules(retry=retry.Fixed(attempts=2, delay=0.2), timeout_s=60.0),
    "garbage": Rules(retry=retry.Fixed(attempts=3, delay=0.2)),
    "poison": Rules(retry=retry.Fixed(attempts=2, delay=0.2)),
    "newborn": Rules(retry=retry.Fixed(attempts=2, delay=0.2)),
    "told": Rules(retry=retry.Fixed(attempts=3, delay=0.2)),
    "choosy": Rules(retry=retry.Fixed(attempts=3, delay=0.2)),
    "patient": Rules(retry=retry.Fixed(attempts=3, delay=0.2)),
    "revert": Rules(retry=retry.Fixed(attempts=3, delay=0.2)),
    "reluctant": Rules(retry=retry.NO_RETRY),
}
"""`newborn` is a job that a part of the fleet does not have yet. Events start the three after it; the last two undo."""
FIRST = dict.fromkeys(["told", "choosy", "patient"], "payload") | dict.fromkeys(["revert", "reluctant"], "result")
"""The first parameter of jobs that get a payload, or the result of the step that they undo."""

GARBAGE: dict[str, Callable[[], object]] = {
    "nan": lambda: {"value": float("nan")},
    "nul": lambda: "a\x00b",
    "surrogate": lambda: "\ud800",
    "object": object,
    "huge": lambda: "x" * (MOST_RESULT_BYTES + 1),
}


class Outside:
    """An outside system that refuses a fence below the highest it has seen, and remembers everything."""

    def __init__(self, loop: VirtualLoop, weather: Weather) -> None:
        self._loop = loop
        self._highest: dict[str, int] = {}
        self.weather = weather
        self.bodies: list[Body] = []
        self.effects: list[Effect] = []
        self.starts: dict[str, int] = {}
        self.workflows: tuple[str, ...] = ()
        """Their names: a worker claims them, but runs no body."""
        self.is_over = False
        """The run has ended: what leftovers still do is not recorded."""

    def starting(self, context: Context, worker: int) -> Body:
        body = Body(context.id, context.fence, context.job, worker, self._loop.time())
        if not self.is_over:
            self.bodies.append(body)
            self.starts[context.id] = self.starts.get(context.id, 0) + 1
        return body

    def ended(self, body: Body) -> None:
        if not self.is_over:
            body.ended_at = self._loop.time()

    def effect(self, body: Body) -> None:
        """A fenced effect; refused if a later start was here before."""
        if self.is_over:
            return
        accepted = body.fence >= self._highest.get(body.id, 0)
        if accepted:
            self._highest[body.id] = body.fence
        self.effects.append(Effect(body.id, body.fence, self._loop.time(), accepted))


class Bodies:
    """The functions of one process."""

    def __init__(self, outside: Outside, process: Process, worker: int) -> None:
        self._outside = outside
        self._process = process
        self._worker = worker

    def targets(self) -> dict[str, FunctionExecutor]:
        flows = {name: self._target("steady", RULES["steady"]) for name in self._outside.workflows}
        return {name: self._target(name, rules) for name, rules in RULES.items()} | flows

    def _target(self, name: str, rules: Rules) -> FunctionExecutor:
        function = getattr(self, f"_{name}")
        signature = Signature(function, name)
        return FunctionExecutor(function, signature, rules, MOST_RESULT_BYTES)

    async def _steady(self, context: Context, seconds: float = 0.0, tag: int = 0) -> Any:
        with self._body(context) as body:
            await asyncio.sleep(seconds)
            return self._done(body)

    async def _flaky(self, context: Context, failures: int, seconds: float = 0.0) -> Any:
        with self._body(context) as body:
            await asyncio.sleep(seconds)
            if context.attempt <= failures:
                raise ValueError(f"attempt {context.attempt} of {failures} that fail")
            return self._done(body)

    async def _doomed(self, context: Context, tag: int = 0) -> Any:
        with self._body(context):
            raise ValueError("always\x00fails \ud800")

    async def _hopeless(self, context: Context, tag: int = 0) -> Any:
        with self._body(context):
            raise Hopeless("there is no point")

    async def _once(self, context: Context, fails: bool = False) -> Any:
        with self._body(context) as body:
            if fails:
                raise ValueError("no second chance")
            return self._done(body)

    async def _asked(self, context: Context, failures: int) -> Any:
        with self._body(context) as body:
            if context.attempt <= failures:
                raise ValueError("ask the policy")
            return self._done(body)

    async def _steered(self, context: Context, signal: str, seconds: float) -> Any:
        with self._body(context) as body:
            if self._outside.starts[context.id] > 2:
                return self._done(body)
            match signal:
                case "retry":
                    raise RetryIn(seconds)
                case "snooze":
                    raise Snooze(seconds)
                case _:
                    raise FailForGood("enough")

    async def _slow(self, context: Context, slow_starts: int) -> Any:
        with self._body(context) as body:
            if context.attempt <= slow_starts:
                await asyncio.sleep(_TOO_LONG_S)
            return self._done(body)

    async def _tardy(self, context: Context, seconds: float) -> Any:
        with self._body(context) as body:
            await asyncio.sleep(seconds)
            if seconds < 1:
                raise ValueError("until the total timeout ends it")
            return self._done(body)

    async def _deaf(self, context: Context, seconds: float) -> Any:
        with self._body(context) as body:
            body.is_deaf = True
            # Written off, it may outlive the next attempt, which is quick.
            until = asyncio.get_running_loop().time() + (seconds if context.attempt == 1 else 0)
            while (left_s := until - asyncio.get_running_loop().time()) > 0:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(left_s)
                if self._outside.is_over:
                    break
            return self._done(body)

    async def _long(self, context: Context, seconds: float) -> Any:
        with self._body(context) as body:
            await asyncio.sleep(seconds)
            return self._done(body)

    async def _garbage(self, context: Context, kind: str) -> Any:
        with self._body(context):
            return GARBAGE[kind]()

    async def _poison(self, context: Context, kills: int) -> Any:
        with self._body(context) as body:
            await asyncio.sleep(context.fence / 10)
            if self._outside.starts[context.id] <= kills and not self._outside.is_over:
                self._outside.weather.note(Fault.BODY_KILLED)
                self._process.kill()
                await asyncio.Event().wait()
            return self._done(body)

    async def _newborn(self, context: Context, tag: int = 0) -> Any:
        with self._body(context) as body:
            return self._done(body)

    async def _told(self, context: Context, payload: dict[str, int]) -> Any:
        with self._body(context) as body:
            return self._done(body)

    _choosy = _patient = _told

    async def _revert(self, context: Context, result: dict[str, Any] | None, seconds: float = 0.1) -> Any:
        with self._body(context) as body:
            await asyncio.sleep(seconds)
            return self._done(body)

    async def _reluctant(self, context: Context, result: dict[str, Any] | None) -> Any:
        with self._body(context) as body:
            if len(self._outside.bodies) % 2:
                raise ValueError("this cannot be undone now")
            return self._done(body)

    @contextlib.contextmanager
    def _body(self, context: Context) -> Iterator[Body]:
        body = self._outside.starting(context, self._worker)
        try:
            yield body
        finally:
            self._outside.ended(body)

    def _done(self, body: Body) -> dict[str, Any]:
        self._outside.effect(body)
        return {"fence": body.fence}


_TOO_LONG_S = 20.0
