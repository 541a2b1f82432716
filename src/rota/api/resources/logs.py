"""The log of an execution: by range as JSON, whole as text or NDJSON, or live as server-sent events.

The log is read page by page, never as a whole. A position is `fence.line`: lines count from 1 within each attempt, and
attempts are in the order of their fences, so a reader that names the last line which it has seen misses and repeats
nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Annotated, Literal

import msgspec

from rota.api import accept, sse
from rota.api.answer import EVENT_STREAM, JSON, NDJSON, Answer, shown
from rota.api.call import Call
from rota.api.problem import Flaw, Problem, bad_parameter
from rota.api.quotas import QuotaKeeper
from rota.api.resources.stream import PING_S, RETRY_MS, why_closed
from rota.api.route import route
from rota.domain.access import Scope
from rota.domain.errors import StoreUnavailable
from rota.domain.instant import MICROSECONDS, instant
from rota.store import notes
from rota.views import log as views
from rota.views.log import LogLine, LogPage, Position
from rota.views.shape import to_json

TEXT = "text/plain"

MEDIA = (JSON, TEXT, NDJSON, EVENT_STREAM)

PAGE = 1000

LOOK_S = 0.5

LATE_S = 1.0
"""The last lines of an attempt are written up to so long after its end, and maybe after the first of the next one."""

OLD_S = 5.0
"""Before lines that are so old, no other ones are to come. More than `LATE_S`, because clocks differ."""

_POSITION = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)

_TEXT = "text/plain; charset=utf-8"


class LogQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """`attempt` is the fence of an attempt. `after` is a position, `fence.line`; `tail` begins so many lines before the
    end instead. Without `limit` a JSON page has 50 lines, and the other forms have all of them."""

    attempt: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None
    """Only the lines of this attempt."""
    stream: Literal["stdout", "stderr", "log", "rota"] | None = None
    after: str | None = None
    """The place of the last line that is known, as `fence.line`: the answer begins after it."""
    tail: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    """Only the last lines, so many."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE)] | None = None


class LogRange(msgspec.Struct, frozen=True):
    """Which lines of which execution a request reads, after the defaults of its query are applied."""

    id: str
    after: Position
    fence: int | None
    stream: str | None
    limit: int | None


@route(
    "GET /executions/{execution}/logs",
    Scope.READ,
    answer=LogPage,
    media=MEDIA,
    line=LogLine,
    codes=("not_acceptable", "too_many_streams"),
)
async def logs(call: Call, query: LogQuery) -> Answer:
    """The log of an execution: a page as JSON, all of it as text or NDJSON, or live as server-sent events."""
    media = accept.chosen(call.headers, MEDIA)
    wanted = LogRange(
        call.path["execution"], await _start(call, query, media), query.attempt, query.stream, query.limit
    )
    if media == JSON:
        return shown(await _page(call, wanted, wanted.after, query.limit or 50))
    await _page(call, wanted, wanted.after, 1)  # An unknown execution is refused before the stream begins.
    if media == EVENT_STREAM:
        quotas = await call.services.part(QuotaKeeper).of(call.namespace)
        call.services.feed.check_room(call.namespace, call.grant.token_id or call.address, quotas.max_streams)
        return Answer(media=EVENT_STREAM, headers=sse.HEADERS, stream=_events(call, wanted))
    encode = _as_text if media == TEXT else _as_ndjson
    return Answer(media=_TEXT if media == TEXT else media, stream=_all(call, wanted, encode))


def position(text: str) -> Position | None:
    """None for a text that is no position."""
    found = _POSITION.fullmatch(text)
    return None if found is None or int(found[1]) > notes.END[0] else (int(found[1]), int(found[2]))


async def _start(call: Call, query: LogQuery, media: str) -> Position:
    """Where to begin: behind the last event that a reconnecting stream has seen, behind `after`, or at the tail."""
    if query.after is not None and query.tail is not None:
        raise bad_parameter("tail", "tail: give after or tail, not both")
    seen = call.headers.get("last-event-id") if media == EVENT_STREAM else None
    if seen is not None:
        found = position(seen)
        if found is None:
            words = "Last-Event-ID is the id of the last event of this stream, such as 1.17"
            raise Problem("bad_header", words, flaws=[Flaw("bad_header", words, header="Last-Event-ID")])
        return found
    if query.after is not None:
        found = position(query.after)
        if found is None:
            raise bad_parameter("after", "after: a position is a fence and the number of a line, such as 1.17")
        return found
    if query.tail is not None:
        id = call.path["execution"]
        return await call.read(notes.before_last, call.namespace, id, query.tail, query.attempt, query.stream)
    return notes.START


async def _page(call: Call, wanted: LogRange, after: Position, most: int) -> LogPage:
    return await call.read(views.log_page, call.namespace, wanted.id, after, wanted.fence, wanted.stream, most)


async def _all(call: Call, wanted: LogRange, encode: Callable[[Iterable[LogLine]], bytes]) -> AsyncIterator[bytes]:
    """The lines that are there now."""
    after, left = wanted.after, wanted.limit
    while True:
        found = await _page(call, wanted, after, PAGE if left is None else min(PAGE, left))
        if found.items:
            yield encode(found.items)
            after = _behind(found.items)
        left = None if left is None else left - len(found.items)
        if not found.has_more or left == 0:
            return


async def _events(call: Call, wanted: LogRange) -> AsyncIterator[bytes]:
    """Until the log is over, the client leaves, its token ends, or the server stops."""
    feed, clock = call.services.feed, call.services.clock
    owner = call.grant.token_id or call.address
    with feed.counted(call.namespace, owner):
        yield sse.retry(RETRY_MS + round(clock.random() * RETRY_MS))
        follower = _Follower(call, wanted)
        quiet_since = clock.monotonic()
        while (reason := await why_closed(call)) is None:
            lines = await follower.next()
            if lines:
                yield b"".join(_event(line) for line in lines)
                quiet_since = clock.monotonic()
            elif follower.is_done:
                yield sse.event("end", to_json({"status": follower.status}).encode())
                return
            else:
                if clock.monotonic() - quiet_since >= PING_S:
                    yield sse.event("ping", b"{}")
                    quiet_since = clock.monotonic()
                await asyncio.sleep(LOOK_S)
        yield sse.event("bye", msgspec.json.encode({"reason": reason}))


class _Follower:
    """Reads lines as they are written. The lines of an attempt are held back until the one before it had time to write
    its last ones."""

    def __init__(self, call: Call, wanted: LogRange) -> None:
        self._call, self._wanted = call, wanted
        self._after, self._left = wanted.after, wanted.limit
        self._waits_until: float | None = None
        self.is_done = False
        self.status = ""

    async def next(self) -> list[LogLine]:
        """The next lines; none if there are none yet, or, with `is_done`, none to come."""
        if self._left == 0:
            self.is_done = True
            return []
        now = self._call.services.clock.monotonic()
        most = PAGE if self._left is None else min(PAGE, self._left)
        try:
            found = await _page(self._call, self._wanted, self._after, most)
        except StoreUnavailable:
            return []  # The next look is after the outage.
        self.status = found.status
        lines = self._ripe(found.items, now)
        if lines:
            self._after, self._waits_until = _behind(lines), None
            self._left = None if self._left is None else self._left - len(lines)
        elif not found.items and found.is_over:
            # The last lines may be written right after the end of the execution.
            self.is_done = self._is_late(now)
        return lines

    def _ripe(self, lines: list[LogLine], now: float) -> list[LogLine]:
        """The lines of the attempt that was read last; those of the next one if no more are to come of it."""
        of_first = [line for line in lines if line.fence == lines[0].fence]
        if not of_first or self._after[0] in (0, of_first[0].fence):
            return of_first
        age_s = (self._call.services.clock.now() - instant(of_first[0].at)) / MICROSECONDS
        return of_first if age_s > OLD_S or self._is_late(now) else []

    def _is_late(self, now: float) -> bool:
        """Whether the last lines of an attempt have had their time."""
        if self._waits_until is None:
            self._waits_until = now + LATE_S
        return now >= self._waits_until


def _behind(lines: list[LogLine]) -> Position:
    return lines[-1].fence, lines[-1].line


def _event(line: LogLine) -> bytes:
    return sse.event("line", to_json(line).encode(), f"{line.fence}.{line.line}")


def _as_text(lines: Iterable[LogLine]) -> bytes:
    return "".join(f"{line.text}\n" for line in lines).encode("utf-8", "replace")


def _as_ndjson(lines: Iterable[LogLine]) -> bytes:
    return "".join(f"{to_json(line)}\n" for line in lines).encode()
