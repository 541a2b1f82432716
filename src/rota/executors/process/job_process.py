"""The inside of a process that runs one isolated job at a time: reads a call, runs the function, answers.

The function runs in the main thread, so that SIGTERM raises an exception in it; an async function is cancelled. The
worker announces its SIGTERM with a message. Any other SIGTERM is ignored: a service manager that sends it to all
processes has sent it to the worker too, and the worker decides.

A copy of this process that the job has forked must not write to the connection: messages of two writers would mix. If
the copy has closed the connection, its descriptor may belong to another file.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
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
from rota.executors.attempt_state import AttemptState
from rota.executors.function import NOT_COMMITTED, FunctionExecutor
from rota.executors.process import connection
from rota.executors.process.connection import STOPPED, Answer, Call, Caller, LogLine, Message, NewState, Ready
from rota.executors.process.fork_guard import Original
from rota.executors.process.lines import MOST_LINE
from rota.executors.process.meter import Meter
from rota.executors.process.process_baseline import ProcessBaseline

LAST_TASKS_S = 1.0
"""How long tasks that a function has left behind may take to end."""


class Stopped(BaseException):
    """Raised in a function that is asked to stop. Not an Exception, so that it is not caught by mistake."""


class JobProcess:
    """Serves one connection until its end."""

    def __init__(self, end: socket.socket, targets: Mapping[str, FunctionExecutor], meter: Meter) -> None:
        self._end = end
        self._targets = targets
        self._attempt: AttemptState | None = None
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stop_asked = False
        self._is_stop_raised = False
        self._is_sending = False
        self._send_lock = threading.Lock()
        self._caller = Caller(end)
        self._meter = meter
        self._baseline = ProcessBaseline()
        self._original = Original()
        self._variables = contextvars.copy_context()
        """The context variables as the import of the app has left them; each call runs in a copy."""

    def send_ready(self) -> None:
        """Tells the worker that the app is loaded, and how much memory that took."""
        self._may_continue()
        self._meter.end()
        self._send(Ready(spent=self._meter.spent))

    def serve(self) -> int:
        """Returns the exit code."""
        while self._may_continue() and (message := self._caller.next()) is not None:
            if not isinstance(message, Call):
                return STOPPED
            self._meter.begin()
            outcome, written = self._run(message)
            self._original.end_copy()
            usage = self._meter.end()
            leftover = self._baseline.restored()
            try:
                self._send(Answer(outcome, usage, self._meter.spent, written, leftover))
            except OSError:
                return STOPPED  # The job or the worker has closed the connection.
        return STOPPED if self._is_stop_asked else 0

    def _may_continue(self) -> bool:
        """Installs the SIGTERM handler again: a job may have replaced it. Returns whether to wait for another call."""
        signal.signal(signal.SIGTERM, self._stop)
        return not self._is_stop_asked

    def _run(self, call: Call) -> tuple[Outcome, str | None]:
        target = self._targets.get(call.claim.job)
        if target is None:
            missing = payload.error("UnknownJob", f"the process has no job {call.claim.job!r}")
            return Failed(missing), None
        attempt = self._attempt = AttemptState(call.claim, call.deadline, target.completions)
        attempt.notes = self
        attempt.begin_slice(call.slice_s)
        try:
            if self._is_stop_asked:
                self._raise_stop()  # The signal came before the process had read this call.
            prepared = target.prepare(call.claim.arguments, attempt)
            if isinstance(prepared, Failed):
                return prepared, None
            value = self._call(target, *prepared)
        except BaseException as error:
            self._original.end_copy(error)
            return target.raised(error, call.claim), attempt.written
        finally:
            self._attempt = attempt.notes = None
            gc.collect(0)
        return (NOT_COMMITTED if attempt.written is not None else target.returned(value)), attempt.written

    def line(self, id: str, fence: int, stream: str, text: str) -> None:
        """Sends a line of `ctx.log`. All lines of a forked copy go through the pipe of its standard error."""
        text = payload.clean(text, MOST_LINE)
        if not self._original.is_copied:
            self._send(LogLine(stream, text))
        else:
            with contextlib.suppress(OSError, ValueError):  # Standard error may be closed.
                sys.stderr.write(f"{text}\n")
                sys.stderr.flush()

    def lines(self, id: str, fence: int, stream: str, texts: list[str]) -> None:
        for text in texts:
            self.line(id, fence, stream, text)

    def state(self, state: State) -> None:
        if self._original.is_copied:
            raise UsageError(
                "a process that a job has forked cannot report progress or save a checkpoint: do that in the job itself"
            )
        self._send(NewState(state))

    def _send(self, message: Message) -> None:
        """May be called from any thread of the job. A stop waits until the message is complete."""
        is_main = threading.current_thread() is threading.main_thread()
        if is_main:
            self._is_sending = True
        try:
            with self._send_lock:
                connection.send(self._end, message)
        finally:
            if is_main:
                self._is_sending = False
        if is_main and self._is_stop_asked:
            self._raise_stop()

    def _call(self, target: FunctionExecutor, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if not target.is_async:
            return self._variables.copy().run(target.function, *args, **kwargs)
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(target.function(*args, **kwargs), context=self._variables.copy())
        try:
            return self._loop.run_until_complete(self._task)
        finally:
            self._task = None
            self._cancel_rest(self._loop)

    def _cancel_rest(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancels the tasks that the function has left behind: they would continue during the next call."""
        if rest := asyncio.all_tasks(loop):
            for task in rest:
                task.cancel()
            _, still_running = loop.run_until_complete(asyncio.wait(rest, timeout=LAST_TASKS_S))
            if still_running:
                self._loop = None  # The next call gets a new loop.

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self._original.is_copied:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        if not self._caller.is_stop_announced():
            return
        self._is_stop_asked = True  # Between two calls this is enough: `serve` checks it before the next call.
        if not self._is_sending:
            self._raise_stop()

    def _raise_stop(self) -> None:
        """Stops the function. Does so once, so that its clean-up is not interrupted."""
        if self._is_stop_raised or self._attempt is None:
            return
        self._is_stop_raised = True
        self._attempt.ask_to_stop()
        if self._task is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)
        else:
            raise Stopped
