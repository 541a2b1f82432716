"""The inside of a process that runs one job at a time: takes a call, runs the function, answers.

The function has the main thread, so that a signal reaches it wherever it is. Asked to stop (SIGTERM) it gets an
exception there, as an async one is cancelled; what it does not heed ends with the process. A SIGTERM that the worker
has not announced is somebody else's, who has told the worker too or has no say in it: the function goes on.

Only this process speaks to the worker. A copy that the job has forked shares the connection, and two that write to it
at once would be understood by nobody; or it has closed it, and another file has its number.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from types import FrameType
from typing import Any

from rota.domain import payload
from rota.domain.errors import UsageError
from rota.domain.note import State
from rota.domain.outcome import Failed, Outcome
from rota.domain.status import Reason
from rota.executors import frames
from rota.executors.context import Context
from rota.executors.forked import Original
from rota.executors.frames import STOPPED, Answer, Call, Caller, Message, Ready, Told, Wrote
from rota.executors.function import FunctionTarget
from rota.executors.lines import MOST_LINE
from rota.executors.meter import Meter
from rota.executors.room import Room

LAST_TASKS_S = 1.0
"""How long tasks that a function has left behind may take to end."""
_NOT_COMMITTED = Failed(
    payload.error("NotCommitted", "the job returned, but the transaction in which it completed was not committed")
)


class Stopped(BaseException):
    """Raised in a function that is asked to stop. Not an Exception, so that it is not caught by mistake."""


class Body:
    """Serves one connection until its end."""

    def __init__(self, end: socket.socket, targets: Mapping[str, FunctionTarget]) -> None:
        self._end = end
        self._targets = targets
        self._context: Context | None = None
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_asked = False
        self._is_told = False
        self._is_speaking = False
        self._mouth = threading.Lock()
        self._caller = Caller(end)
        self._meter = Meter()
        self._room = Room()
        self._original = Original()

    def greet(self) -> None:
        """Says that the app is loaded, and what that has cost."""
        self._listens()
        self._say(Ready(spent=self._meter.spent))

    def serve(self) -> int:
        """Returns the exit code."""
        while self._listens() and (message := self._caller.next()) is not None:
            if not isinstance(message, Call):
                return STOPPED
            self._meter.begin()
            outcome, written = self._run(message)
            self._original.end_copy()
            usage = self._meter.end()
            spoilt = self._room.tidied()
            try:
                self._say(Answer(outcome, usage, self._meter.spent, written, spoilt))
            except OSError:
                return STOPPED  # The connection is gone: the job has closed it, or so has the worker.
            if self._is_asked:
                return STOPPED
        return 0

    def _listens(self) -> bool:
        """Also to a request to stop, whatever a job has made of the signal."""
        signal.signal(signal.SIGTERM, self._stop)
        return True

    def _run(self, call: Call) -> tuple[Outcome, str | None]:
        target = self._targets.get(call.claim.job)
        if target is None:
            missing = payload.error("UnknownJob", f"the process has no job {call.claim.job!r}")
            return Failed(missing, Reason.UNKNOWN_JOB), None
        context = self._context = Context(call.claim, call.deadline, target.completions)
        context.notes = self
        context.begin_slice(call.slice_s)
        try:
            prepared = target.prepare(call.claim.arguments, context)
            if isinstance(prepared, Failed):
                return prepared, None
            value = self._called(target, *prepared)
        except BaseException as error:
            return target.raised(error, call.claim.attempts + 1), context.written
        finally:
            self._context = context.notes = None
            gc.collect(0)
        return (_NOT_COMMITTED if context.written is not None else target.returned(value)), context.written

    def line(self, id: str, fence: int, stream: str, text: str) -> None:
        """What `ctx.log` says; what is printed or logged goes through the pipes, and so does all that a copy says."""
        text = payload.clean(text, MOST_LINE)
        if not self._original.is_copied:
            self._say(Wrote(stream, text))
        else:
            with contextlib.suppress(OSError, ValueError):  # As with what is logged, it may lead nowhere.
                sys.stderr.write(f"{text}\n")
                sys.stderr.flush()

    def lines(self, id: str, fence: int, stream: str, texts: list[str]) -> None:
        for text in texts:
            self.line(id, fence, stream, text)

    def state(self, state: State) -> None:
        if self._original.is_copied:
            raise UsageError(
                "a process that a job has forked cannot tell of its progress or keep a checkpoint: the job itself can"
            )
        self._say(Told(state))

    def _say(self, message: Message) -> None:
        """From any thread of the job. To be stopped in the middle of a message would garble it, so that waits."""
        if threading.current_thread() is not threading.main_thread():
            with self._mouth:
                frames.send(self._end, message)
            return
        self._is_speaking = True
        try:
            with self._mouth:
                frames.send(self._end, message)
        finally:
            self._is_speaking = False
        if self._is_asked and not self._is_told:
            self._raise()

    def _called(self, target: FunctionTarget, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if not target.is_async:
            return target.function(*args, **kwargs)
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(target.function(*args, **kwargs))
        try:
            return self._loop.run_until_complete(self._task)
        finally:
            self._task = None
            self._cancel_rest(self._loop)

    def _cancel_rest(self, loop: asyncio.AbstractEventLoop) -> None:
        """What the function has left behind on its loop would go on in the next call, as if that had begun it."""
        if rest := asyncio.all_tasks(loop):
            for task in rest:
                task.cancel()
            _, deaf = loop.run_until_complete(asyncio.wait(rest, timeout=LAST_TASKS_S))
            if deaf:
                self._loop = None  # That one is never run again.

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self._original.is_copied:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        if not self._caller.is_told_to_stop():
            return
        self._is_asked = True
        if self._context is None and not self._is_speaking:
            os._exit(STOPPED)
        if not self._is_speaking:
            self._raise()

    def _raise(self) -> None:
        """Once: what a function does after it was told is not disturbed."""
        if self._is_told or self._context is None:
            return
        self._is_told = True
        self._context._ask_to_stop()
        if self._task is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)
        else:
            raise Stopped
