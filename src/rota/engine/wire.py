"""What travels between a child (`wire_client`) and its supervisor (`wire_server`): the verbs of a worker.

The child runs user code, which may keep the interpreter for as long as it likes, also in the middle of a write that
holds a lock of the database. So the supervisor writes on the child's behalf.

A call is `[number, verb, arguments]`, an answer `[number, failure, result]`, both in msgpack behind four bytes of
length. Hints come down the same way, as an answer to no call: one listener for each supervisor, not for each child.
Only the verbs below can be called, and nothing that travels can carry code.

Jobs can write to the child's end of the socket, so the supervisor trusts nothing that comes from it: a call has a
maximum length, and no verb names a worker: all of them concern the worker that the child is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from rota.domain.breaker import Breaker
from rota.domain.errors import LeaseLost, RotaError, StoreError, StoreFull, StoreMismatch, StoreUnavailable
from rota.domain.note import Piece, State
from rota.domain.outcome import Outcome, Succeeded
from rota.domain.requirement import Room
from rota.domain.served import Served
from rota.domain.usage import Usage
from rota.engine.port import Attempts
from rota.ops.claim import Claimed, FinishedAndClaimed, Mark
from rota.ops.finish import Finished
from rota.store.hints import Hint

LENGTH = 4
MOST_BYTES = 80 * 1024 * 1024
"""The longest call: the largest result that a setting allows (64 MiB), or a batch of 16 Mi characters of results,
errors or checkpoints (`completer.MOST_BYTES`, `scribe.MOST_STATES`) at four bytes each, and 16 MiB for the rest."""
REPORTING = ("finish_and_claim", "finish")
NO_CALL = -1
BUFFER = 1024 * 1024
_FAILURES: dict[str, type[RotaError]] = {
    kind.code: kind for kind in (LeaseLost, StoreUnavailable, StoreFull, StoreMismatch, StoreError)
}
_encode = msgspec.msgpack.Encoder().encode


class Report(msgspec.Struct, frozen=True, array_like=True):
    """A `Finished` on its way. Of what is written, only that it is."""

    id: str
    fence: int
    outcome: Outcome
    jitter: float
    is_written: bool = False
    usage: Usage | None = None
    breakers: tuple[Breaker, ...] = ()
    pauses: bool = False


class TooLong(Exception):
    """A frame above the limit. Nothing of it was read."""


Success = tuple[str, int, str]
"""The id, the fence and the result: of most attempts there is no more to say."""
Reports = tuple[list[Success], list[Report]]
VERBS: dict[str, tuple[Any, Any]] = {
    "claim": (tuple[Served, int, list[Mark] | None, Room], Claimed),
    "finish": (tuple[Reports], list[str]),
    "finish_and_claim": (tuple[Reports, Served, int, list[Mark] | None, Room], FinishedAndClaimed),
    "write_notes": (tuple[list[Piece], list[State]], list[str]),
    "drain": (tuple[()], None),
    "tell_trouble": (tuple[dict[str, str]], None),
    "reconcile": (tuple[list[str], Attempts], Attempts),
    "has_ready": (tuple[Served], bool),
    "cancels": (tuple[()], list[str]),
    "holds_more": (tuple[list[str]], bool),
}
"""The verbs of `engine.port.WorkerStore`: the types of the arguments, and of the answer."""
_takes = {verb: msgspec.msgpack.Decoder(takes) for verb, (takes, _) in VERBS.items()}
_gives = {verb: msgspec.msgpack.Decoder(gives) for verb, (_, gives) in VERBS.items()}
_call = msgspec.msgpack.Decoder(tuple[int, str, msgspec.Raw])
_news = msgspec.msgpack.Decoder(list[Hint])
_read_report = msgspec.msgpack.Decoder(Report)
_answer = msgspec.msgpack.Decoder(tuple[int, tuple[str, str] | None, msgspec.Raw])


def call(number: int, name: str, arguments: tuple[Any, ...]) -> bytes:
    if name in REPORTING:
        arguments = (_reports(arguments[0]), *arguments[1:])
    return _framed(_encode((number, name, arguments)))


def read_call(data: bytes) -> tuple[int, str, tuple[Any, ...]]:
    number, name, raw = _call.decode(data)
    arguments = _takes[name].decode(raw)
    if name in REPORTING:
        arguments = (_all_finished(*arguments[0]), *arguments[1:])
    return number, name, arguments


def answer(number: int, result: Any) -> bytes:
    return _framed(_encode((number, None, result)))


def failure(number: int, error: Exception) -> bytes:
    code = error.code if isinstance(error, RotaError) else ""
    return _framed(_encode((number, (code, str(error)), None)))


def read_answer(data: bytes, names: dict[int, str]) -> tuple[int, Any]:
    """The number of the call, and its result or the exception to raise."""
    number, failed, raw = _answer.decode(data)
    name = names.pop(number)
    if failed is not None:
        code, text = failed
        return number, _FAILURES.get(code, RuntimeError)(text)
    return number, _gives[name].decode(raw)


def hints(news: Sequence[Hint]) -> bytes:
    return _framed(_encode((NO_CALL, None, news)))


def read_hints(data: bytes) -> list[Hint] | None:
    """The hints in a frame; None if it is an answer."""
    number, _, raw = _answer.decode(data)
    return _news.decode(raw) if number == NO_CALL else None


def report_line(finished: Finished) -> bytes:
    """A report as one line of text, for the pipe beside the socket."""
    return _encode(_report(finished)).hex().encode()


def read_report(line: bytes) -> Finished:
    return _finished(_read_report.decode(bytes.fromhex(line.decode())))


async def read_frame(stream: asyncio.StreamReader, most_bytes: int | None = None) -> bytes | None:
    """The next frame; None at the end. Raises TooLong before it reads a frame of more than `most_bytes`."""
    try:
        length = int.from_bytes(await stream.readexactly(LENGTH))
        if most_bytes is not None and length > most_bytes:
            raise TooLong(f"a frame of {length:,} bytes, and the limit is {most_bytes:,}")
        return await stream.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(LENGTH) + data


def _reports(reports: Sequence[Finished]) -> Reports:
    successes: list[Success] = []
    others: list[Report] = []
    for one in reports:
        outcome = one.outcome
        is_plain = type(outcome) is Succeeded and one.written is None and one.usage is None
        if is_plain and not one.breakers and not one.pauses:
            successes.append((one.id, one.fence, outcome.result))  # type: ignore[union-attr]
        else:
            others.append(_report(one))
    return successes, others


def _all_finished(successes: list[Success], others: list[Report]) -> list[Finished]:
    reports = [Finished(id, fence, Succeeded(result)) for id, fence, result in successes]
    if others:
        reports += map(_finished, others)
    return reports


def _report(finished: Finished) -> Report:
    attempt = (finished.id, finished.fence, finished.outcome, finished.jitter)
    return Report(*attempt, finished.written is not None, finished.usage, finished.breakers, finished.pauses)


def _finished(report: Report) -> Finished:
    attempt = (report.id, report.fence, report.outcome, report.jitter)
    written = "" if report.is_written else None
    return Finished(*attempt, "", written, report.usage, None, report.breakers, report.pauses)
