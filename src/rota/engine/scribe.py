"""Writes down what attempts tell while they run: lines of their logs, how far they are, and their checkpoints.

Jobs tell from any thread and never wait. What they told is written in batches, a moment later; of several states within
a moment the last counts. Of a long log the beginning and the end are kept: the beginning as it comes, the end when the
attempt has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Sequence

import msgspec

from rota.clock import Clock
from rota.domain import payload
from rota.domain.errors import StoreUnavailable
from rota.domain.note import Line, State
from rota.engine.bridge import Bridge
from rota.engine.loop import Loop
from rota.ops import notes

log = logging.getLogger("rota.engine")

MOMENT_S = 0.2
MOST_LINES, MOST_LINE_BYTES = 1000, 8192
HEAD_BYTES = TAIL_BYTES = 512 * 1024
MOST_WAITING_BYTES = 16 * 1024 * 1024
"""What may wait while the database is away; more is left out, and the log says so."""


class _Log:
    """The log of one attempt."""

    __slots__ = ("count", "left_out", "size", "tail", "tail_size")

    def __init__(self) -> None:
        self.count = 0
        self.size = 0
        self.tail: deque[tuple[int, str, str]] = deque()
        self.tail_size = 0
        self.left_out = 0


class Scribe:
    """Implements `executors.context.Notes` for all attempts of a process."""

    def __init__(self, bridge: Bridge, clock: Clock) -> None:
        self._bridge = bridge
        self._clock = clock
        self._lock = threading.Lock()
        self._logs: dict[tuple[str, int], _Log] = {}
        self._lines: list[Line] = []
        self._waiting_bytes = 0
        self._states: dict[tuple[str, int], State] = {}
        self._in_flight: dict[tuple[str, int], State] = {}
        self._turn = asyncio.Lock()
        self._is_due = False
        self._event_loop = asyncio.get_running_loop()
        self.loop = Loop("scribe", self.step)

    @property
    def is_empty(self) -> bool:
        return not self._lines and not self._states and not self._turn.locked()

    def has_state(self, id: str, fence: int) -> bool:
        """Whether there is something that the database does not know yet."""
        return (id, fence) in self._states or (id, fence) in self._in_flight

    def line(self, id: str, fence: int, stream: str, text: str) -> None:
        text = payload.clean(text, MOST_LINE_BYTES)
        size = len(text) + 1
        with self._lock:
            known = self._logs.setdefault((id, fence), _Log())
            known.count += 1
            known.size += size
            if known.size <= HEAD_BYTES and self._waiting_bytes <= MOST_WAITING_BYTES:
                self._add(id, fence, known.count, stream, text)
            else:
                known.tail.append((known.count, stream, text))
                known.tail_size += size
                while known.tail_size > TAIL_BYTES:
                    _, _, oldest = known.tail.popleft()
                    known.tail_size -= len(oldest) + 1
                    known.left_out += 1

    def state(self, state: State) -> None:
        state = msgspec.structs.replace(state, at=self._clock.now())
        with self._lock:
            key = (state.id, state.fence)
            before = self._states.get(key)
            self._states[key] = state if before is None else _merged(before, state)
            self._wake()

    def ended(self, id: str, fence: int) -> None:
        """The attempt has said its last: the end of a long log is written now."""
        if (id, fence) not in self._logs:  # Most have said nothing.
            return
        with self._lock:
            known = self._logs.pop((id, fence))
            if known.left_out:
                words = f"({known.left_out:,} lines are left out here)"
                self._add(id, fence, known.tail[0][0] - 1 if known.tail else known.count, "rota", words)
            for number, stream, text in known.tail:
                self._add(id, fence, number, stream, text)

    async def step(self) -> float | None:
        while self._lines or self._states:
            await self.flush()
        return None

    async def flush(self) -> None:
        """Writes what there is now, or a good piece of it. One after the other: nothing overtakes what came before."""
        async with self._turn:
            with self._lock:
                self._is_due = False
                lines, self._lines = self._lines[:MOST_LINES], self._lines[MOST_LINES:]
                states, self._states = self._states, {}
                self._in_flight = states
                self._waiting_bytes -= sum(len(line.text) for line in lines)
            try:
                if lines or states:
                    await self._write(lines, list(states.values()))
            finally:
                self._in_flight = {}

    async def _write(self, lines: Sequence[Line], states: Sequence[State]) -> None:
        try:
            await self._bridge.transact(notes.write, list(lines), list(states))
        except StoreUnavailable:
            with self._lock:
                self._lines[:0] = lines
                self._waiting_bytes += sum(len(line.text) for line in lines)
                for state in states:
                    key = (state.id, state.fence)
                    self._states[key] = _merged(state, self._states[key]) if key in self._states else state
            raise
        except Exception:
            # Nobody's work may be lost for what it says.
            log.exception("%d lines of logs and %d states could not be written", len(lines), len(states))

    def _wake(self) -> None:
        """In a moment. Called with the lock held, from any thread."""
        if not self._is_due:
            self._is_due = True
            with contextlib.suppress(RuntimeError):  # The event loop is closed: this process is on its way out.
                self._event_loop.call_soon_threadsafe(self._event_loop.call_later, MOMENT_S, self.loop.wake.wake)

    def _add(self, id: str, fence: int, number: int, stream: str, text: str) -> None:
        self._lines.append(Line(id, fence, number, self._clock.now(), stream, text))
        self._waiting_bytes += len(text)
        self._wake()


def _merged(before: State, after: State) -> State:
    return State(
        after.id,
        after.fence,
        after.at,
        before.done if after.done is None else after.done,
        before.total if after.done is None else after.total,
        before.note if after.note is None else after.note,
        before.checkpoint if after.checkpoint is None else after.checkpoint,
    )
