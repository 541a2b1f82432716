"""Writes down what attempts tell while they run: lines of their logs, how far they are, and their checkpoints.

Jobs tell from any thread and never wait. What they told is written in batches, a moment later: of several states within
a moment the last counts, and what one attempt has written to its log is cut into pieces then, once and for all. A write
whose answer was lost is repeated with the same pieces, so that no line is doubled. Of a long log the beginning and the
end are kept: the beginning as it comes, the end when the attempt has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Sequence
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
"""Lines of one stream within that time are said to have been written at once."""
MOST_LINE_BYTES = 8192
MOST_PIECES, MOST_BYTES = 1000, 1024 * 1024
"""What is written in one transaction."""
MOST_STATES = 16 * 1024 * 1024
"""Characters of checkpoints in one transaction."""
HEAD_BYTES = TAIL_BYTES = 512 * 1024
MOST_WAITING_BYTES = 16 * 1024 * 1024
"""What may wait while the database is away; more is left out, and the log says so."""
MOST_ENDED = 2000
"""So many attempts that have ended are remembered: a thread may be about to say something for one of them."""


class _Log:
    """The log of one attempt."""

    __slots__ = ("count", "fence", "fresh", "id", "left_out", "left_out_to", "size", "tail", "tail_size")

    def __init__(self, id: str, fence: int) -> None:
        self.id = id
        self.fence = fence
        self.count = 0
        self.size = 0
        self.fresh: list[Run] = []
        """What has not been cut into pieces yet."""
        self.tail: deque[Run] = deque()
        self.tail_size = 0
        self.left_out = 0
        self.left_out_to = 0
        """The number of the last line that was left out."""

    def add_to_tail(self, run: Run) -> None:
        """Of what is long gone whole runs are left out, which takes no look at their lines."""
        if len(run.texts) == 1 and self.tail and _goes_on(self.tail[-1], run.first, run.at, run.stream):
            self.tail[-1].texts.append(run.texts[0])
            self.tail[-1].size += run.size
        else:
            self.tail.append(run)
        self.tail_size += run.size
        while self.tail_size - self.tail[0].size >= TAIL_BYTES:
            oldest = self.tail.popleft()
            self.tail_size -= oldest.size
            self.left_out += len(oldest.texts)
            self.left_out_to = oldest.first + len(oldest.texts) - 1

    def shorten(self) -> None:
        """Leaves out the oldest lines of the tail, as many as there is no room for."""
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
    """Implements `executors.context.Notes` for all attempts of a process."""

    def __init__(self, store: WorkerStore, clock: Clock) -> None:
        self._store = store
        self._now = clock.now
        self._lock = threading.Lock()
        self._logs: dict[tuple[str, int], _Log] = {}
        self._ended: dict[tuple[str, int], None] = {}
        self._speakers: deque[_Log] = deque()
        """Those with fresh lines, whether or not they have ended."""
        self._pieces: deque[Piece] = deque()
        self._waiting_bytes = 0
        self._states: dict[tuple[str, int], State] = {}
        self._in_flight: dict[tuple[str, int], State] = {}
        self._turn = asyncio.Lock()
        self._is_due = False
        self._rested_at = 0.0
        """From when on something new is written at once: a moment after the last time."""
        self._event_loop = asyncio.get_running_loop()
        self.loop = Loop("scribe", self.step)

    @property
    def is_empty(self) -> bool:
        return not self._has_more and not self._turn.locked()

    @property
    def _has_more(self) -> bool:
        return bool(self._speakers or self._pieces or self._states)

    def has_state(self, id: str, fence: int) -> bool:
        """Whether there is something that the database does not know yet."""
        return (id, fence) in self._states or (id, fence) in self._in_flight

    def line(self, id: str, fence: int, stream: str, text: str) -> None:
        text = payload.clean(text, MOST_LINE_BYTES)
        size = len(text) + 1
        at = self._now()
        with self._lock:
            known = self._logs.get((id, fence)) or self._begun(id, fence)
            if known.size + size > HEAD_BYTES or self._waiting_bytes > MOST_WAITING_BYTES:
                self._take(known, at, stream, [text], size, is_head=False)
                return
            # The same as `_take`, for every line of every job that is not long: with as few calls as can be.
            known.size += size
            known.count = number = known.count + 1
            self._waiting_bytes += size
            if not known.fresh:
                self._speakers.append(known)
            elif _goes_on(run := known.fresh[-1], number, at, stream):
                run.texts.append(text)
                run.size += size
                return
            known.fresh.append(Run(number, at, stream, [text], size))
            if not self._is_due:
                self._wake()

    def lines(self, id: str, fence: int, stream: str, texts: list[str]) -> None:
        """Several at once; the list is ours from now on."""
        if texts:
            self._hear(id, fence, stream, payload.clean_all(texts, MOST_LINE_BYTES))

    def state(self, state: State) -> None:
        state = msgspec.structs.replace(state, at=self._now())
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
            self._ended[id, fence] = None
            if len(self._ended) > MOST_ENDED:
                del self._ended[next(iter(self._ended))]
            if not known.tail:
                return
            known.shorten()
            if known.left_out:
                words = f"({known.left_out:,} lines are left out here)"
                self._add(known, Run(known.left_out_to, self._now(), "rota", [words], len(words) + 1))
            for run in known.tail:
                self._add(known, run)

    async def step(self) -> float | None:
        while self._has_more:
            await self.flush()
        return None

    async def flush(self) -> None:
        """Writes what there is now, or a good part of it. One after the other: nothing overtakes what came before."""
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
        """The pieces go when they are written, or can never be; until then they are the first to be written next."""
        try:
            await self._store.write_notes(list(some), list(states))
        except StoreUnavailable:
            with self._lock:
                for state in states:
                    key = (state.id, state.fence)
                    self._states[key] = _merged(state, self._states[key]) if key in self._states else state
            raise
        except Exception:
            # Nobody's work may be lost for what it says.
            log.exception("%d pieces of logs and %d states could not be written", len(some), len(states))
        with self._lock:
            for piece in some:
                self._pieces.popleft()
                self._waiting_bytes -= len(piece.text)

    def _begun(self, id: str, fence: int) -> _Log:
        known = _Log(id, fence)
        if (id, fence) in self._ended:
            known.size = HEAD_BYTES  # Its numbers are taken: what comes now goes into a tail that nobody will ask for.
        else:
            self._logs[id, fence] = known
        return known

    def _hear(self, id: str, fence: int, stream: str, texts: list[str]) -> None:
        at, size = self._now(), size_of(texts)
        with self._lock:
            known = self._logs.get((id, fence)) or self._begun(id, fence)
            is_head = known.size + size <= HEAD_BYTES and self._waiting_bytes <= MOST_WAITING_BYTES
            if is_head or len(texts) == 1 or known.size >= HEAD_BYTES:
                self._take(known, at, stream, texts, size, is_head)
                return
            for text in texts:  # Somewhere in between is the end of the beginning.
                size = len(text) + 1
                is_head = known.size + size <= HEAD_BYTES and self._waiting_bytes <= MOST_WAITING_BYTES
                self._take(known, at, stream, [text], size, is_head)

    def _take(self, known: _Log, at: int, stream: str, texts: list[str], size: int, is_head: bool) -> None:
        first = known.count + 1
        known.count += len(texts)
        known.size += size
        run = Run(first, at, stream, texts, size)
        if is_head:
            self._add(known, run)
        else:
            known.add_to_tail(run)

    def _add(self, known: _Log, run: Run) -> None:
        """There will be something to write."""
        if not known.fresh:
            self._speakers.append(known)
        known.fresh.append(run)
        self._waiting_bytes += run.size
        self._wake()

    def _fresh(self) -> list[tuple[_Log, list[Run]]]:
        """Takes what is not cut yet, or a good part of it. Called with the lock held."""
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
        """Takes the first states, as many as go into one transaction, and at least one. Called with the lock held."""
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
        """The first pieces, as many as go into one transaction, and at least one if there is any."""
        some: list[Piece] = []
        size = 0
        for piece in islice(self._pieces, MOST_PIECES):
            size += len(piece.text)
            if some and size > MOST_BYTES:
                break
            some.append(piece)
        return some

    def _wake(self) -> None:
        """At once if nothing was written for a moment, or else after that. Called with the lock held, in any thread."""
        if not self._is_due:
            self._is_due = True
            loop = self._event_loop
            with contextlib.suppress(RuntimeError):  # The event loop is closed: this process is on its way out.
                loop.call_soon_threadsafe(loop.call_at, max(loop.time(), self._rested_at), self.loop.wake.wake)


def _goes_on(run: Run, number: int, at: int, stream: str) -> bool:
    """Whether one more line belongs to the run."""
    if run.stream != stream or not 0 <= at - run.at < RUN_US:
        return False
    count = len(run.texts)
    return run.first + count == number and count < MOST_LINES


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
