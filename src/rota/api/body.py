"""Bodies of requests: read within limits while they come, inflated within limits, and decoded strictly."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from difflib import get_close_matches
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

from rota.api.problem import Flaw, Problem, bad_member
from rota.domain import plain_types, strict_json
from rota.domain.strict_json import BadJson

T = TypeVar("T")
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
ROOM_BESIDE_PAYLOAD = 64 * 1024
MOST_OF_MANY = 8 * 1024 * 1024
SLOWEST_S = 30.0
"""A body must come within this time, or at `SLOWEST_RATE` bytes per second."""
SLOWEST_RATE = 1024
USUAL = 64 * 1024
MOST_RATIO = 100
FREE_OF_RATIO = 1024 * 1024
"""A compressed body may become so large before its ratio is looked at."""


class Gone(Exception):
    """The client has closed the connection."""


async def pieces(receive: Receive, headers: Mapping[str, str], gap_s: float | None = None) -> AsyncIterator[bytes]:
    """The body as it comes, inflated. With `gap_s` only the time between two pieces is bounded."""
    inflate = _inflater(headers)
    loop = asyncio.get_running_loop()
    begun, total, has_more = loop.time(), 0, True
    while has_more:
        left = gap_s if gap_s is not None else max(0.0, begun + max(SLOWEST_S, total / SLOWEST_RATE) - loop.time())
        data, has_more = await _next(receive, left)
        total += len(data)
        for piece in inflate(data, not has_more):
            yield piece


async def _next(receive: Receive, within_s: float) -> tuple[bytes, bool]:
    """The next bytes of a body, and whether there are more."""
    steps = receive().__await__()
    try:
        waits_for = next(steps)
    except StopIteration as done:
        message = done.value  # Most bodies come with their headers, and need no timer.
    else:
        message = await _rest(steps, waits_for, within_s)
    if message["type"] == "http.disconnect":
        raise Gone
    return message.get("body", b""), message.get("more_body", False)


async def _rest(steps: Generator[Any, None, Mapping[str, Any]], waits_for: Any, within_s: float) -> Mapping[str, Any]:
    """The message of a `receive` that has begun to wait."""
    try:
        async with asyncio.timeout(within_s):
            return await _Begun(steps, waits_for)
    except TimeoutError:
        raise Problem("too_slow", "the body came too slowly: send it at 1 KiB per second or faster") from None


class _Begun:
    """The rest of an awaitable whose first step was made outside of `await`."""

    def __init__(self, steps: Generator[Any, None, Mapping[str, Any]], waits_for: Any) -> None:
        self._steps, self._waits_for = steps, waits_for

    def __await__(self) -> Generator[Any, None, Mapping[str, Any]]:
        try:
            yield self._waits_for
            return (yield from self._steps)
        finally:
            self._steps.close()


async def whole(
    receive: Receive, headers: Mapping[str, str], most: int, hold: Callable[[int], None] = lambda _: None
) -> bytes:
    """All of the body, counted while it comes: a Content-Length is not trusted. `hold` may refuse further bytes."""
    announced = headers.get("content-length", "")
    if announced.isdigit() and int(announced) > most:
        raise too_large(most)
    if announced.isdigit() and "content-encoding" not in headers and int(announced) <= USUAL:
        # Most bodies are small and come at once.
        data, has_more = await _next(receive, SLOWEST_S)
        if not has_more and len(data) <= most:
            hold(len(data))
            return data
        receive = _again(data, has_more, receive)
    found: list[bytes] = []
    size = 0
    async for piece in pieces(receive, headers):
        size += len(piece)
        if size > most:
            raise too_large(most)
        hold(len(piece))
        found.append(piece)
    return b"".join(found)


def _again(data: bytes, has_more: bool, receive: Receive) -> Receive:
    """Gives a message that was taken once more, and then those that follow."""
    taken = [{"type": "http.request", "body": data, "more_body": has_more}]

    async def first_taken() -> Mapping[str, Any]:
        return taken.pop() if taken else await receive()

    return first_taken


def too_large(most: int) -> Problem:
    return Problem("too_large", f"the body is larger than {most:,} bytes")


def too_many(most: int, count: int) -> Problem:
    return Problem("too_large", f"an array has at most {most:,} items, not {count:,}: send several, or NDJSON")


def absent() -> msgspec.Raw:
    """The default of a member that is any JSON: no text at all. A null in the body means the same."""
    return msgspec.Raw(b"")


def check_media(headers: Mapping[str, str], allowed: tuple[str, ...]) -> str:
    """The media type of the body, which must be one of these."""
    found = headers.get("content-type", "").partition(";")[0].strip().lower()
    if found not in allowed:
        media = " or ".join(allowed)
        missing = f"the header Content-Type is missing: send {media}"
        wrong = f"the header Content-Type must be {media}, not {found[:64]!r}"
        raise Problem("unsupported_media_type", wrong if found else missing)
    return found


def decoded(data: bytes, kind: Any) -> Any:
    """Checked JSON as a value of this type. Bad content is a 422 that lists all flaws."""
    flaws: list[Flaw] = []
    value = convert(data, kind, "", flaws)
    refuse(flaws)
    return value


async def check(data: bytes, most_items: int = 0, most_each: int = 0) -> None:
    """`check_json` for a whole body, or for the items of an array. A large body is checked beside the event loop."""
    if len(data) > USUAL:
        await asyncio.to_thread(_check_large, data, most_items, most_each)
    else:
        check_json(data)


def _check_large(data: bytes, most_items: int, most_each: int) -> None:
    """Items one by one, so that other threads have a turn, and their number and sizes before the costly checks."""
    items = _items(data) if most_items else None
    if items is None:
        check_json(data)
        return
    if len(items) > most_items:
        raise too_many(most_items, len(items))
    if any(len(item) > most_each for item in items):
        raise too_large(most_each)
    for at, item in enumerate(items):
        check_json(item, f"/{at}")


def _items(data: bytes) -> list[bytes] | None:
    """The items of an array; None if it is no array, or no JSON at all."""
    try:
        return [bytes(item) for item in msgspec.json.decode(data, type=list[msgspec.Raw])]
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def check_json(data: bytes, pointer: str = "") -> None:
    try:
        strict_json.check(data)
    except BadJson as bad:
        raise bad_member(pointer + bad.pointer, bad.detail, "bad_json") from None


def refuse(flaws: list[Flaw]) -> None:
    if flaws:
        raise Problem(flaws[0].code, flaws[0].detail, flaws=flaws)


def convert(data: bytes, kind: Any, pointer: str, flaws: list[Flaw]) -> Any:
    """The checked JSON as a value; None if `flaws` got some. Members of an object are decoded one by one."""
    kind = _without_none(kind)
    if get_origin(kind) is list and data.lstrip()[:1] == b"[":
        items = msgspec.json.decode(data, type=list[msgspec.Raw])
        return [convert(bytes(item), get_args(kind)[0], f"{pointer}/{at}", flaws) for at, item in enumerate(items)]
    if msgspec.Raw in get_args(kind):
        return msgspec.Raw(data.strip())  # The text of an optional value of any type, as it was sent.
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)) or data.lstrip()[:1] != b"{":
        return _leaf(data, kind, pointer, flaws)
    members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    fields = fields_of(kind)
    values, before = {}, len(flaws)
    for name, raw in members.items():
        if name not in fields:
            flaws.append(_unknown(name, list(fields), pointer))
        elif bytes(raw).strip() != b"null" or fields[name].required:
            values[fields[name].name] = convert(bytes(raw), fields[name].type, _below(pointer, name), flaws)
        elif fields[name].default is msgspec.UNSET:
            values[fields[name].name] = None  # A PATCH, in which null puts the default back.
    for name, field in fields.items():
        if field.required and name not in members:
            flaws.append(Flaw("missing_field", f"{name} is missing", pointer=_below(pointer, name)))
    return kind(**values) if len(flaws) == before else None


@cache
def fields_of(kind: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    """The members by name. msgspec evaluates the annotations at each call."""
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


@cache
def _without_none(kind: Any) -> Any:
    """The struct or list that a member is if it is there; else the type as it is."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    others = [one for one in get_args(kind) if one is not NoneType]
    return others[0] if len(others) == 1 else kind


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def _leaf(data: bytes, kind: Any, pointer: str, flaws: list[Flaw]) -> Any:
    try:
        return _decoder(kind).decode(data)
    except msgspec.ValidationError as error:
        words, _, path = str(error).partition(" - at `$")
        words = plain_types.in_message(words)
        where = pointer + path.rstrip("`").replace(".", "/").replace("[", "/").replace("]", "")
        flaws.append(Flaw("bad_field", f"{where or 'the body'}: {words[:1].lower()}{words[1:]}", pointer=where))
        return None


def _unknown(name: str, known: list[str], pointer: str) -> Flaw:
    near = get_close_matches(name, known, 1)
    hint = f": did you mean {near[0]}?" if near else ""
    return Flaw("unknown_field", f"there is no member {name[:64]!r}{hint}", pointer=_below(pointer, name))


def _below(pointer: str, name: str) -> str:
    return f"{pointer}/{name[:64].replace('~', '~0').replace('/', '~1')}"


def _inflater(headers: Mapping[str, str]) -> Callable[[bytes, bool], list[bytes]]:
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding == "identity":
        return lambda data, is_last: [data] if data else []
    if encoding != "gzip":
        raise Problem("unsupported_media_type", f"Content-Encoding is gzip or nothing, not {encoding[:32]!r}")
    inflater, sizes = _gzip(), [0, 0]

    def inflate(data: bytes, is_last: bool) -> list[bytes]:
        nonlocal inflater
        found = []
        sizes[0] += len(data)
        try:
            while data:
                if inflater.eof:  # A body may be several gzip files, one after another.
                    inflater = _gzip()
                piece = inflater.decompress(data, 256 * 1024)
                sizes[1] += len(piece)
                if sizes[1] > FREE_OF_RATIO and sizes[1] > MOST_RATIO * sizes[0]:
                    raise Problem("too_large", f"the body becomes more than {MOST_RATIO} times as large when inflated")
                found.append(piece)
                data = inflater.unconsumed_tail or inflater.unused_data
        except zlib.error:
            raise Problem("bad_body", "the body is not gzip, although Content-Encoding says so") from None
        if is_last and not inflater.eof:
            raise Problem("bad_body", "the gzip data of the body is cut off")
        return found

    return inflate


def _gzip() -> zlib._Decompress:
    return zlib.decompressobj(zlib.MAX_WBITS | 16)
