"""What a child and its supervisor say to each other about the store.

The child runs user code, which may keep the interpreter for as long as it likes, also in the middle of a write that
everybody else waits for. So it is the supervisor that writes, on the child's behalf.

A call is `[number, verb, arguments]`, an answer `[number, failure, result]`, both in msgpack behind four bytes of
length. Hints come down the same way, as an answer to no call: one listener for each node, not for each child. Only the
operations below can be called, and nothing that travels can carry code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from rota.domain.breaker import Breaker
from rota.domain.duration import seconds
from rota.domain.errors import LeaseLost, RotaError, StoreError, StoreMismatch, StoreUnavailable
from rota.domain.lifecycle import Rules
from rota.domain.note import Piece, State
from rota.domain.outcome import Outcome, Succeeded
from rota.domain.requirement import Room
from rota.domain.retry import Custom, Exponential, Fixed, Linear, Policy
from rota.domain.usage import Usage
from rota.ops import claim, finish, fleet, notes, trouble, turn
from rota.ops.claim import Claimed, Mark
from rota.ops.finish import DEFAULT_RULES, Finished
from rota.ops.turn import Turned
from rota.store import reader
from rota.store.hints import Hint

LENGTH = 4
REPORTING = ("turn", "finish")
NO_CALL = -1
BUFFER = 1024 * 1024
_FAILURES: dict[str, type[RotaError]] = {
    kind.code: kind for kind in (LeaseLost, StoreUnavailable, StoreMismatch, StoreError)
}
_encode = msgspec.msgpack.Encoder().encode


class Terms(msgspec.Struct, frozen=True, array_like=True):
    """What the lifecycle needs of a job's rules. Exception classes and callables have done their part in the child."""

    policy: str
    attempts: int
    step_s: float = 0.0
    factor: float = 2.0
    cap_s: float = 0.0
    jitter: bool = True
    total_timeout_s: float | None = None


class Report(msgspec.Struct, frozen=True, array_like=True):
    """A `Finished` on its way; `terms` only where the lifecycle needs them. Of what is written, only that it is."""

    id: str
    fence: int
    outcome: Outcome
    jitter: float
    terms: Terms | None
    is_written: bool = False
    usage: Usage | None = None
    breakers: tuple[Breaker, ...] = ()
    pauses: bool = False


class Verb(msgspec.Struct, frozen=True):
    """One operation that a child may ask for, and the types that go in and come out."""

    op: Callable[..., Any]
    takes: Any
    gives: Any
    reads: bool = False


Success = tuple[str, int, str]
"""The id, the fence and the result: of most attempts there is no more to say."""
Reports = tuple[list[Success], list[Report]]
Attempts = list[tuple[str, int]]
VERBS: dict[str, Verb] = {
    "claim": Verb(claim.claim, tuple[int, str, str, list[str] | None, int, list[Mark], Room], Claimed),
    "turn": Verb(turn.turn, tuple[Reports, int, str, str, list[str] | None, int, list[Mark], Room], Turned),
    "finish": Verb(finish.finish, tuple[Reports], list[str]),
    "notes": Verb(notes.write, tuple[list[Piece], list[State]], list[str]),
    "drain": Verb(fleet.drain, tuple[int], None),
    "trouble": Verb(trouble.tell, tuple[int, dict[str, str]], None),
    "reconcile": Verb(fleet.reconcile, tuple[int, list[str], Attempts], Attempts),
    "has_ready": Verb(reader.has_ready, tuple[str, str, list[str] | None], bool, reads=True),
    "cancels": Verb(reader.cancels, tuple[int], list[str], reads=True),
    "holds_more": Verb(reader.holds_more, tuple[int, list[str]], bool, reads=True),
}
NAMES: dict[Callable[..., Any], str] = {verb.op: name for name, verb in VERBS.items()}
_takes = {name: msgspec.msgpack.Decoder(verb.takes) for name, verb in VERBS.items()}
_gives = {name: msgspec.msgpack.Decoder(verb.gives) for name, verb in VERBS.items()}
_call = msgspec.msgpack.Decoder(tuple[int, str, msgspec.Raw])
_news = msgspec.msgpack.Decoder(list[Hint])
_answer = msgspec.msgpack.Decoder(tuple[int, tuple[str, str] | None, msgspec.Raw])


def call(number: int, name: str, arguments: tuple[Any, ...]) -> bytes:
    if name in REPORTING:
        arguments = (_reports(arguments[0]), *arguments[1:])
    return _framed(_encode((number, name, arguments)))


def read_call(data: bytes) -> tuple[int, Verb, tuple[Any, ...]]:
    number, name, raw = _call.decode(data)
    arguments = _takes[name].decode(raw)
    if name in REPORTING:
        arguments = (_all_finished(*arguments[0]), *arguments[1:])
    return number, VERBS[name], arguments


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
    return _finished(msgspec.msgpack.decode(bytes.fromhex(line.decode()), type=Report))


async def read_frame(stream: asyncio.StreamReader) -> bytes | None:
    """The next frame; None at the end."""
    try:
        return await stream.readexactly(int.from_bytes(await stream.readexactly(LENGTH)))
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
        if is_plain and not one.rules.breakers and not one.rules.pauses:
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
    plain = finished.rules is DEFAULT_RULES or type(finished.outcome) is Succeeded
    terms = None if plain else _terms(finished.rules)
    written = finished.written is not None
    rules = finished.rules
    attempt = (finished.id, finished.fence, finished.outcome, finished.jitter)
    return Report(*attempt, terms, written, finished.usage, rules.breakers, rules.pauses)


def _terms(rules: Rules) -> Terms:
    total_s = rules.total_timeout_s
    match rules.retry:
        case Linear(attempts=attempts, step=step, cap=cap):
            return Terms("linear", attempts, seconds(step), cap_s=seconds(cap), total_timeout_s=total_s)
        case Exponential(attempts=attempts, base=base, factor=factor, cap=cap, jitter=jitter):
            return Terms("exponential", attempts, seconds(base), factor, seconds(cap), jitter, total_s)
        case Fixed(attempts=attempts, delay=delay):
            return Terms("fixed", attempts, seconds(delay), total_timeout_s=total_s)
        case Custom(attempts=attempts):
            # The callable was asked in the child, and its answer is in the outcome.
            return Terms("fixed", attempts, total_timeout_s=total_s)


def _rules(terms: Terms) -> Rules:
    policy: Policy
    match terms.policy:
        case "linear":
            policy = Linear(attempts=terms.attempts, step=terms.step_s, cap=terms.cap_s)
        case "exponential":
            factor, cap = terms.factor, terms.cap_s
            policy = Exponential(
                attempts=terms.attempts, base=terms.step_s, factor=factor, cap=cap, jitter=terms.jitter
            )
        case _:
            policy = Fixed(attempts=terms.attempts, delay=terms.step_s)
    return Rules(retry=policy, total_timeout_s=terms.total_timeout_s)


def _finished(report: Report) -> Finished:
    rules = DEFAULT_RULES if report.terms is None else _rules(report.terms)
    if report.breakers or report.pauses:
        rules = replace(rules, breakers=report.breakers, pauses=report.pauses)
    written = "" if report.is_written else None
    return Finished(report.id, report.fence, report.outcome, rules, report.jitter, "", written, report.usage)
