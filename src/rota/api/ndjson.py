"""A stream of lines, each an execution or an event to accept: committed in chunks, answered while it comes.

One task reads lines and gathers them; the answer is written by another. Reading never waits for the client to read the
answer: what is not sent yet is merged into few lines. A client that sends everything before it reads does not block.
The next chunk is decoded while the one before is committed, and committed after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

import msgspec

from rota.api import body
from rota.api.answer import NDJSON, Answer
from rota.api.body import Gone
from rota.api.call import Call
from rota.api.line_answers import LineAnswers
from rota.api.problem import Problem, of_any
from rota.api.quotas import Admitted
from rota.domain.errors import RotaError

MOST_LINES = 2_000
MOST_BYTES = 4 * 1024 * 1024
LONGEST_S = 0.05
"""A chunk is committed when it is full, or so long after its first line."""
GAP_S = 60.0
"""The longest time between two pieces of the body."""
DRAIN_S = 30.0
"""How long the rest of a body is read, and thrown away, after the stream was stopped."""
MOST_REFUSED = 1_000
BREATH = 200
"""After so many lines other requests get a turn."""
_STOPS = (
    *("queue_full", "namespace_full", "quota_exceeded", "request_in_progress"),
    *("store_unavailable", "commit_unknown", "draining", "internal"),
)
"""Problems of a whole chunk: no later line would fare better."""


log = logging.getLogger("rota.api")


class Sink(Protocol):
    """What the lines are."""

    async def begin(self, count: int) -> None:
        """A chunk of so many lines follows."""

    async def order(self, line: bytes, number: int) -> Any:
        """What is submitted for a line of checked JSON; a problem if it is refused."""

    async def admit(self, count: int) -> Admitted:
        """How many further lines a quota allows."""

    async def submit(self, orders: Sequence[Any]) -> list[str]:
        """Accepts all of them or none, in one transaction. Returns their ids."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line that can be submitted."""

    number: int
    order: Any


class Chunk:
    """Lines that are submitted together."""

    def __init__(self, first: int) -> None:
        self.first = self.last = first
        self.lines: list[Line] = []
        self.refused: list[tuple[int, Problem]] = []
        self.bytes = 0

    @property
    def is_full(self) -> bool:
        return self.last - self.first + 1 >= MOST_LINES or self.bytes >= MOST_BYTES


class Stop(Exception):
    """Ends the stream at a line, with a problem."""

    def __init__(self, line: int, problem: Problem) -> None:
        super().__init__(line)
        self.line, self.problem = line, problem


async def ingest(call: Call, sink: Sink, *, with_ids: bool) -> Answer:
    call.request_key()  # A malformed key is refused before anything is read.
    stream = _Stream(call, sink, LineAnswers(with_ids=with_ids))
    return Answer(status=200, media=NDJSON, stream=stream.answers(), headers={"X-Accel-Buffering": "no"})


class _Stream:
    def __init__(self, call: Call, sink: Sink, out: LineAnswers) -> None:
        self._call, self._sink, self._out = call, sink, out
        self._held = call.services.room.held()
        self._refused = 0
        self._lines = _Lines(call, call.services.settings.max_payload_bytes + body.ROOM_BESIDE_PAYLOAD)

    async def answers(self) -> AsyncIterator[bytes]:
        """The lines of the answer. The body is read by a task, however slowly these are taken."""
        reading = asyncio.create_task(self._read())
        try:
            async for piece in self._out.pieces():
                yield piece
            # A client that sends everything before it reads would lose the answer if the connection was closed now.
            await asyncio.wait([reading], timeout=DRAIN_S)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            self._held.release()

    async def _read(self) -> None:
        try:
            await self._commit_all()
        except Stop as stop:
            self._out.stop(stop.line, stop.problem)
            await self._lines.skip()
        except Gone:
            self._out.close()
        except (Problem, RotaError) as error:
            self._out.stop(self._out.next_line, of_any(error))
            await self._lines.skip()
        except Exception:
            log.exception("the lines of request %s could not be read", self._call.request_id)
            self._out.close()
        else:
            self._out.done()

    async def _commit_all(self) -> None:
        """Decodes each chunk while the one before is committed."""
        committing: asyncio.Task[None] | None = None
        try:
            async for number, lines in self._chunks():
                chunk = await self._decoded(number, lines)
                if committing is not None:
                    await committing
                    committing = None
                committing = asyncio.create_task(self._commit(chunk))
                # Without this a client that sends slowly would wait for the answer to its last chunk.
                await asyncio.sleep(0)
            if committing is not None:
                await committing
        except BaseException as error:
            if committing is not None:
                # The answer has the outcome of this chunk first, then the reason why the stream ends.
                await asyncio.gather(committing, return_exceptions=isinstance(error, asyncio.CancelledError))
            raise

    async def _chunks(self) -> AsyncIterator[tuple[int, list[bytes]]]:
        """Raw lines, gathered, with the number of the first."""
        lines: list[bytes] = []
        first, size = 1, 0
        loop = asyncio.get_running_loop()
        until: float | None = None
        while True:
            found = await self._lines.next(until)
            for line in found or ():
                lines.append(line)
                size += len(line)
                if len(lines) >= MOST_LINES or size >= MOST_BYTES:
                    yield first, lines
                    first, lines, size, until = first + len(lines), [], 0, None
            if lines and until is None:
                until = loop.time() + LONGEST_S
            if lines and (found is None or (until is not None and loop.time() >= until)):
                yield first, lines
                first, lines, size, until = first + len(lines), [], 0, None
            if found is None:
                return

    async def _decoded(self, number: int, lines: list[bytes]) -> Chunk:
        chunk = Chunk(number)
        size = sum(map(len, lines))
        self._held.add(size)
        chunk.bytes = size
        await self._sink.begin(len(lines))
        for place, raw in enumerate(lines):
            chunk.last = number + place
            if line := raw if isinstance(raw, _TooLong) else raw.strip(b" \t\r"):
                try:
                    chunk.lines.append(Line(chunk.last, await self._order(line, chunk.last)))
                except (Problem, RotaError) as error:
                    chunk.refused.append((chunk.last, of_any(error)))
            if place % BREATH == BREATH - 1:
                await asyncio.sleep(0)
        return chunk

    async def _order(self, line: bytes, number: int) -> Any:
        if isinstance(line, _TooLong):
            raise body.too_large(line.most)
        if len(line) > body.USUAL:
            await body.check(line)
        else:
            body.check_json(line)
        return await self._sink.order(line, number)

    async def _commit(self, chunk: Chunk) -> None:
        """Submits a chunk and tells its outcome."""
        # A token that was revoked meanwhile, or has expired, ends the stream; what was committed stays.
        self._call.grant = await self._call.services.grant_of(self._call.headers, self._call.address)
        stop: Stop | None = None
        lines = chunk.lines
        try:
            admitted = await self._sink.admit(len(lines))
            if admitted.problem is not None:
                stop, lines = Stop(lines[admitted.count].number, admitted.problem), lines[: admitted.count]
            ids = await self._submit(chunk, lines)
        except (Problem, RotaError) as error:
            problem = of_any(error)
            raise Stop(lines[0].number if lines else chunk.first, problem) from None
        finally:
            self._held.release(chunk.bytes)
        last = chunk.last if stop is None else stop.line - 1
        refused = sorted((one for one in chunk.refused if one[0] <= last), key=lambda one: one[0])
        self._refused += len(refused)
        self._out.committed(chunk.first, last, len(ids), refused, ids)
        if stop is not None:
            raise stop
        if self._refused >= MOST_REFUSED:
            words = f"{self._refused:,} lines were refused: mend them, and send the rest"
            raise Stop(chunk.last + 1, Problem("too_many", words))

    async def _submit(self, chunk: Chunk, lines: list[Line]) -> list[str]:
        """The ids of what was accepted. A chunk with lines that are refused is halved until these are found."""
        if not lines:
            return []
        try:
            return await self._sink.submit([line.order for line in lines])
        except (Problem, RotaError) as error:
            problem = of_any(error)
            if problem.code in _STOPS:
                raise
        if len(lines) == 1:
            chunk.refused.append((lines[0].number, problem))
            return []
        half = len(lines) // 2
        return [*await self._submit(chunk, lines[:half]), *await self._submit(chunk, lines[half:])]


class _TooLong(bytes):
    """Stands for a line that is too long to be kept."""

    most = 0


class _Lines:
    """The body as lines. A line that is too long becomes a `_TooLong`, without being kept."""

    def __init__(self, call: Call, most: int) -> None:
        self._pieces = call.body_pieces(GAP_S)
        self._most = most
        self._rest: list[bytes] = []
        self._size = 0
        self._next: asyncio.Task[bytes | None] | None = None

    async def next(self, until: float | None) -> list[bytes] | None:
        """The lines that have come; none if nothing comes until then; None at the end of the body."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._piece())
        left = None if until is None else max(0.0, until - asyncio.get_running_loop().time())
        done, _ = await asyncio.wait([self._next], timeout=left)
        if not done:
            return []
        piece, self._next = self._next.result(), None
        if piece is None:
            return self._last()
        return self._split(piece)

    async def skip(self) -> None:
        """Reads the rest and throws it away."""
        with contextlib.suppress(Problem, Gone):
            if self._next is not None:
                await self._next
            async for _ in self._pieces:
                pass

    async def _piece(self) -> bytes | None:
        return await anext(self._pieces, None)

    def _last(self) -> list[bytes] | None:
        if not self._size:
            return None  # The line break at the end of a body begins no further line.
        found = [self._joined(b"")]
        self._next = asyncio.ensure_future(_nothing())
        return found

    def _split(self, piece: bytes) -> list[bytes]:
        head, *lines = piece.split(b"\n")
        if not lines:
            self._keep(head)
            return []
        found = [self._joined(head), *lines[:-1]]
        self._keep(lines[-1])
        return [self._checked(line) for line in found]

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        # Of a line that is too long only its length is kept.
        if self._size <= self._most:
            self._rest.append(piece)
        elif not self._rest or self._rest != [b"!"]:
            self._rest = [b"!"]

    def _joined(self, end: bytes) -> bytes:
        self._keep(end)
        line = self._checked(b"".join(self._rest), self._size)
        self._rest, self._size = [], 0
        return line

    def _checked(self, line: bytes, size: int | None = None) -> bytes:
        if (len(line) if size is None else size) <= self._most:
            return line
        found = _TooLong(b"!")
        found.most = self._most
        return found


async def _nothing() -> None:
    return None
