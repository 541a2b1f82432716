"""Writes the logs, the progress and the checkpoints of running attempts.

Jobs call it from any thread and never wait. It writes in batches, a moment later: of several states within a moment the
last one counts, and the lines of an attempt are cut into pieces once. A write whose answer was lost is repeated with
the same pieces, so that no line is doubled. Only the beginning and the end of a log above `max_log_bytes` are kept: the
beginning is written as it comes, the end when the attempt has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import MutableSequence, Sequence
from itertools import islice

import msgspec

from rota.clock import Clock
from rota.domain import payload
from rota.domain.errors import StoreUnavailable
from rota.domain.note import MOST_LINES, Piece, Run, State, pieces, size_of
from rota.engine.loop import Loop
from rota.engine.port import WorkerStore

log = logging.getLogger("rota.engine")

MOMENT_S = 0.2
RUN_US = 1000
"""Lines of one stream within that time are stored with the same time."""
MOST_LINE_BYTES = 8192
MOST_PIECES, MOST_BYTES = 1000, 1024 * 1024
"""The most that one transaction writes."""
MOST_STATES = 16 * 1024 * 1024
"""Characters of checkpoints in one transaction."""
MOST_LOG_BYTES = 16 * 1024 * 1024
"""The default of the setting `max_log_bytes`: what is kept of the log of one attempt."""
TAIL_BYTES = 512 * 1024
"""The part of it that is kept for the end, in memory until the attempt has ended."""
LINE_BYTES = 32
"""What a line takes besides its text, in the answers of the API and in the page that shows it. It bounds the number of
short lines."""
FULL = "(max_log_bytes is reached: the last lines follow when the attempt has ended)"
MOST_WAITING_BYTES = 16 * 1024 * 1024
"""The most that waits while the database is away; the rest is left out, and the log says so."""
MOST_ENDED = 2000
"""How many ended attempts are remembered, to drop lines that a thread which the job left behind still writes."""


class _Log(msgspec.Struct, eq=False):
    """The log of one attempt."""

    id: str
    fence: int
    count: int = 0
    size: int = 0
    """What the lines take, of which `max_log_bytes` are kept."""
    is_full: bool = False
    """The beginning is complete: further lines belong to the tail."""
    fresh: list[Run] = []
    """Lines that have not been cut into pieces yet."""
    tail: deque[Run] = msgspec.field(default_factory=deque)
    tail_size: int = 0
    left_out: int = 0
    left_out_to: int = 0
    """The number of the last line that was left out."""

    def add_to_tail(self, run: Run) -> None:
        """Leaves out the oldest runs as a whole, without reading their lines."""
        _append(self.tail, run)
        self.tail_size += run.size
        while self.tail_size - self.tail[0].size >= TAIL_BYTES:
            oldest = self.tail.popleft()
            self.tail_size -= oldest.size
            self.left_out += len(oldest.texts)
            self.left_out_to = oldest.first + len(oldest.texts) - 1

    def shorten(self) -> None:
        """Leaves out the oldest lines of the tail until it fits."""
        while self.tail_size > TAIL_BYTES:
            oldest = self.tail[0]
            texts, over, count = oldest.texts, self.tail_size - TAIL_BYTES, 0
            while over > 0 and count < len(texts):
                over -= len(texts[count]) + 1
                count += 1
            rest = oldest.part(count, len(texts))
            self.tail_size -= oldest.size - rest.size
            self.left_out += count
            self.left_out_to = rest.first - 1
            if rest.texts:
                self.tail[0] = rest
            else:
                self.tail.popleft()


class Scribe:
    """Implements `executors.attempt_state.Notes` for all attempts of a process."""

    def __init__(self, store: WorkerStore, clock: Clock, max_log_bytes: int = MOST_LOG_BYTES) -> None:
        self._store = store
        self._now = clock.now
        self._head_bytes = max_log_bytes - TAIL_BYTES
        self._lock = threading.Lock()
        self._logs: dict[tuple[str, int], _Log] = {}
        self._ended: dict[tuple[str, int], None] = {}
        self._speakers: deque[_Log] = deque()
        """Logs with fresh lines, of running and of ended attempts."""
        self._pieces: deque[Piece] = deque()
        self._waiting_bytes = 0
        self._states: dict[tuple[str, int], State] = {}
        self._in_flight: dict[tuple[str, int], State] = {}
        self._turn = asyncio.Lock()
        self._is_due = False
        self._rested_at = 0.0
        """A moment after the last write: from then on new lines are written at once."""
        self._event_loop = asyncio.get_running_loop()
        self.loop = Loop("scribe", self.step)

    @property
    def is_empty(self) -> bool:
        return not self._has_more and not self._turn.locked()

    @property
    def _has_more(self) -> bool:
        return bool(self._speakers or self._pieces or self._states)

    def has_state(self, id: str, fence: int) -> bool:
        """Whether a state of this attempt is not in the database yet."""
        return (id, fence) in self._states or (id, fence) in self._in_flight

    def line(self, id: str, fence: int, stream: str, text: str) -> None:
        text = payload.clean(text, MOST_LINE_BYTES)
        with self._lock:
            self._add(self._log_of(id, fence), stream, [text], len(text) + 1)

    def lines(self, id: str, fence: int, stream: str, texts: list[str]) -> None:
        """Several lines at once; the caller must not change the list any more."""
        texts = payload.clean_all(texts, MOST_LINE_BYTES)
        size = size_of(texts)
        with self._lock:
            known = self._log_of(id, fence)
            if known.is_full or known.size + size + LINE_BYTES * len(texts) <= self._head_bytes:
                self._add(known, stream, texts, size)
                return
            for text in texts:  # One of these lines is the last one of the beginning.
                self._add(known, stream, [text], len(text) + 1)

    def state(self, state: State) -> None:
        state = msgspec.structs.replace(state, at=self._now())
        with self._lock:
            key = (state.id, state.fence)
            before = self._states.get(key)
            self._states[key] = state if before is None else _merged(before, state)
            self._wake()

    def ended(self, id: str, fence: int) -> None:
        """The attempt has ended: the end of a long log is written now."""
        if (id, fence) not in self._logs:  # Most attempts write nothing.
            return
        with self._lock:
            known = self._logs.pop((id, fence))
            self._ended[id, fence] = None
            if len(self._ended) > MOST_ENDED:
                del self._ended[next(iter(self._ended))]
            if not known.tail:
                return
            known.shorten()
            if known.left_out:
                words = f"({known.left_out:,} lines are left out here)"
                self._to_write(known, Run(known.left_out_to, self._now(), "rota", [words], len(words) + 1))
            for run in known.tail:
                self._to_write(known, run)

    async def step(self) -> float | None:
        while self._has_more:
            await self.flush()
        return None

    async def flush(self) -> None:
        """Writes one batch. Batches are written one after the other, in the order in which the lines came."""
        async with self._turn:
            with self._lock:
                self._is_due = False
                self._rested_at = self._event_loop.time() + MOMENT_S
                fresh = self._fresh()
                states = self._in_flight = self._next_states()
            self._cut(fresh)
            some = self._next()
            try:
                if some or states:
                    await self._write(some, list(states.values()))
            finally:
                self._in_flight = {}

    async def _write(self, some: Sequence[Piece], states: Sequence[State]) -> None:
        """Forgets the pieces when they are written or were refused. Otherwise they are the first of the next batch."""
        try:
            await self._store.write_notes(list(some), list(states))
        except StoreUnavailable:
            with self._lock:
                for state in states:
                    key = (state.id, state.fence)
                    self._states[key] = _merged(state, self._states[key]) if key in self._states else state
            raise
        except Exception:
            # An attempt must not fail because its log cannot be written.
            log.exception("%d pieces of logs and %d states could not be written", len(some), len(states))
        with self._lock:
            for piece in some:
                self._pieces.popleft()
                self._waiting_bytes -= len(piece.text)

    def _log_of(self, id: str, fence: int) -> _Log:
        """Called with the lock held."""
        known = self._logs.get((id, fence))
        if known is None:
            known = _Log(id, fence)
            if (id, fence) in self._ended:
                # Its line numbers are taken, so these lines go to a tail that is never written.
                known.is_full = True
            else:
                self._logs[id, fence] = known
        return known

    def _add(self, known: _Log, stream: str, texts: list[str], size: int) -> None:
        known.size += size + LINE_BYTES * len(texts)
        if known.size > self._head_bytes and not known.is_full:
            known.is_full = True
            known.count += 1
            self._to_write(known, Run(known.count, self._now(), "rota", [FULL], len(FULL) + 1))
        run = Run(known.count + 1, self._now(), stream, texts, size)
        known.count += len(texts)
        if not known.is_full and self._waiting_bytes <= MOST_WAITING_BYTES:
            self._to_write(known, run)
        else:
            known.add_to_tail(run)

    def _to_write(self, known: _Log, run: Run) -> None:
        if not known.fresh:
            self._speakers.append(known)
        _append(known.fresh, run)
        self._waiting_bytes += run.size
        if not self._is_due:
            self._wake()

    def _fresh(self) -> list[tuple[_Log, list[Run]]]:
        """Takes lines that are not cut into pieces yet, about as many as one transaction writes. Called with the lock
        held."""
        found: list[tuple[_Log, list[Run]]] = []
        size = 0
        while self._speakers and size < MOST_BYTES:
            known = self._speakers.popleft()
            size += sum([run.size for run in known.fresh])
            found.append((known, known.fresh))
            known.fresh = []
        self._waiting_bytes -= size
        return found

    def _cut(self, fresh: Sequence[tuple[_Log, list[Run]]]) -> None:
        size = 0
        for known, runs in fresh:
            try:
                found = pieces(known.id, known.fence, runs)
            except Exception:
                log.exception("a part of the log of execution %s cannot be written", known.id)
                continue
            self._pieces += found
            size += sum([len(piece.text) for piece in found])
        with self._lock:
            self._waiting_bytes += size

    def _next_states(self) -> dict[tuple[str, int], State]:
        """Takes as many states as one transaction writes, and at least one. Called with the lock held."""
        size, some = 0, dict[tuple[str, int], State]()
        for key, state in self._states.items():
            size += len(state.checkpoint or "")
            if some and size > MOST_STATES:
                break
            some[key] = state
        for key in some:
            del self._states[key]
        return some

    def _next(self) -> list[Piece]:
        """As many pieces as one transaction writes, and at least one if there is any."""
        some: list[Piece] = []
        size = 0
        for piece in islice(self._pieces, MOST_PIECES):
            size += len(piece.text)
            if some and size > MOST_BYTES:
                break
            some.append(piece)
        return some

    def _wake(self) -> None:
        """Writes at once, or a moment after the last write. Called with the lock held, in any thread."""
        if not self._is_due:
            self._is_due = True
            loop = self._event_loop
            with contextlib.suppress(RuntimeError):  # The event loop is closed: this process is on its way out.
                loop.call_soon_threadsafe(loop.call_at, max(loop.time(), self._rested_at), self.loop.wake.wake)


def _append(runs: MutableSequence[Run], run: Run) -> None:
    """Adds the lines to the last run if they belong to it."""
    if runs:
        last = runs[-1]
        count = len(last.texts)
        is_next = last.stream == run.stream and last.first + count == run.first
        if is_next and 0 <= run.at - last.at < RUN_US and count + len(run.texts) <= MOST_LINES:
            last.texts += run.texts
            last.size += run.size
            return
    runs.append(run)


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
