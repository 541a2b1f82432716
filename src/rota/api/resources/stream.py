"""The stream of live changes: one connection per page of the dashboard."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Annotated

import msgspec

from rota.api import sse
from rota.api.answer import EVENT_STREAM, Answer
from rota.api.call import Call
from rota.api.feed import Feed, OpenStream, topics
from rota.api.problem import Problem
from rota.api.quotas import QuotaKeeper
from rota.api.route import route
from rota.domain.access import Scope
from rota.domain.errors import RotaError
from rota.domain.instant import rfc3339

PING_S = 15.0

LOOK_S = 1.0

MOST_WATCHED = 200

RETRY_MS = 2000

_WATCH = re.compile(r"(executions|runs):[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_TOPICS = ("pulse", "changes")


class StreamQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`topics` is a list such as `pulse,changes`. `watch` is `executions:ID` or `runs:ID`, and may be repeated."""

    topics: str = "pulse,changes"
    """What to send: `pulse` and `changes`, separated by commas."""
    watch: Annotated[list[str], msgspec.Meta(max_length=MOST_WATCHED)] = []
    """The executions and runs to send changes of, such as `executions:ID`."""


@route("GET /stream", Scope.READ, answer=str, media=(EVENT_STREAM,), codes=("too_many_streams",))
async def stream(call: Call, query: StreamQuery) -> Answer:
    """Live changes as server-sent events: pulse, changes, and what is watched."""
    names = [name for name in query.topics.split(",") if name]
    if unknown := [name for name in names if name not in _TOPICS]:
        raise Problem("bad_parameter", f"there is no topic {unknown[0][:64]!r}; there are {', '.join(_TOPICS)}")
    watched = [one for text in query.watch for one in text.split(",") if one]
    if bad := [one for one in watched if not _WATCH.fullmatch(one)]:
        raise Problem("bad_parameter", f"{bad[0][:64]!r} cannot be watched: write executions:ID or runs:ID")
    if len(watched) > MOST_WATCHED:
        raise Problem("bad_parameter", f"at most {MOST_WATCHED} ids can be watched")
    feed = call.services.feed
    opened = OpenStream(call.namespace, topics(names, watched), call.grant.token_id or call.address)
    quotas = await call.services.part(QuotaKeeper).of(call.namespace)
    feed.open(opened, call.headers.get("last-event-id"), quotas.max_streams)
    return Answer(
        media=EVENT_STREAM,
        headers=sse.HEADERS,
        stream=_events(call, feed, opened),
        release=lambda: feed.close(opened),
    )


async def _events(call: Call, feed: Feed, opened: OpenStream) -> AsyncIterator[bytes]:
    """Until the client leaves, its token ends, or the server stops."""
    services = call.services
    try:
        spread = round(services.clock.random() * RETRY_MS)
        hello = {"epoch": feed.epoch, "now": rfc3339(services.clock.now())}
        yield sse.retry(RETRY_MS + spread) + sse.event("hello", msgspec.json.encode(hello))
        quiet_s = 0.0
        while (end := await why_closed(call)) is None:
            events = await opened.take(LOOK_S)
            pieces = []
            if opened.reset is not None:
                pieces.append(sse.event("reset", msgspec.json.encode({"reason": opened.reset})))
                opened.reset = None
            pieces += [sse.event(one.name, one.data, f"{feed.epoch}-{one.number}") for one in events]
            quiet_s = 0.0 if pieces else quiet_s + LOOK_S
            if quiet_s >= PING_S:
                pieces.append(sse.event("ping", b"{}"))
                quiet_s = 0.0
            if pieces:
                yield b"".join(pieces)
        yield sse.event("bye", msgspec.json.encode({"reason": end}))
    finally:
        feed.close(opened)


async def why_closed(call: Call) -> str | None:
    """Why a stream ends, if it does."""
    if call.services.is_draining:
        return "draining"
    try:
        await call.check_token()
    except Problem as refused:
        return "expired" if refused.code == "expired_token" else "revoked"
    except RotaError:
        return None  # The database cannot say now whether the token has ended. It will be asked again.
    return None
