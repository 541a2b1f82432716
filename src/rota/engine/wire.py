"""The socket between a child and its supervisor, over which the child reaches the store.

The child runs user code, which may keep the interpreter for as long as it likes, even in the middle of a write that
holds a lock of the database. So the supervisor (`WireServer`) writes on behalf of the child (`WireClient`).

A frame is four bytes of length, a head and a body in msgpack. The head of a call has its number and the number of its
verb, and the body its arguments. The head of an answer has the number of the call and whether it failed, and the body
the result or the failure. Hints travel like answers, but belong to no call: a supervisor has one listener for all of
its children. Hints of ready rows that come while a claim is being carried out are merged, and sent just before its
answer. Only the verbs of `engine.port.WorkerStore` can be called, and no message can carry code.

Jobs can write to the child's end of the socket, so the supervisor does not trust its messages: a call has a maximum
length, and no verb names a worker or what it serves, because the server is bound to the worker of its child.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import GenericAlias
from typing import Any, cast, get_type_hints

import msgspec

from rota.domain.errors import LeaseLost, RotaError, StoreError, StoreFull, StoreMismatch, StoreUnavailable
from rota.engine import tether
from rota.engine.port import WorkerPort, WorkerStore
from rota.ops.finish import Finished
from rota.store.hints import Hint, Ready, merged

log = logging.getLogger("rota.engine")

LENGTH = 4
_HEAD = struct.Struct(">qB")
MOST_BYTES = 80 * 1024 * 1024
"""The longest call: the largest result that a setting allows (64 MiB), or a batch of 16 Mi characters of results,
errors or checkpoints (`completer.MOST_BYTES`, `scribe.MOST_STATES`) at four bytes each, and 16 MiB for the rest."""
VERBS = [name for name in vars(WorkerStore) if not name.startswith("_")]
Saw = Callable[[str, tuple[Any, ...], Any], None]
"""Called with every verb that was carried out, its arguments and its answer."""
_REPORTING = ("finish_and_claim", "finish")
_CLAIMING = ("finish_and_claim", "claim")
"""Without `claim_on_hint`, which waits for a hint."""
_NO_CALL = -1
_FAILURES: dict[str, type[RotaError]] = {
    kind.code: kind for kind in (LeaseLost, StoreUnavailable, StoreFull, StoreMismatch, StoreError)
}


class TooLong(Exception):
    """A frame above the limit. Its body is not collected."""


class WireServer(asyncio.Protocol):
    """Carries out the calls of one child until it hangs up. Calls may overtake each other, as within one process."""

    def __init__(self, store: WorkerPort, saw: Saw = lambda verb, arguments, answer: None) -> None:
        self._store = store
        self._saw = saw
        self._frames = Frames(MOST_BYTES)
        self._calls: set[asyncio.Task[None]] = set()
        self._claims = 0
        """How many claims are being carried out."""
        self._held: list[Hint] = []
        """Hints that the child gets with the answer to its claim."""
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()

    async def serve(self) -> None:
        """Raises TooLong for a frame above the limit. Data that arrives after its head is ignored."""
        try:
            await self._ended
        finally:
            self._store.close()
            # Calls that arrived are carried out even if the child is gone: it held the lease when it made them.
            await asyncio.gather(*self._calls, return_exceptions=True)
            self._transport.close()

    @property
    def is_busy(self) -> bool:
        """Whether a call is being carried out. A claim that waits for a hint does not count."""
        waiting = 1 if self._store.has_left_claim else 0
        return len(self._calls) > waiting

    def tell(self, hints: Sequence[Hint]) -> None:
        """Makes the claim that an idle child has left, or passes the hints on to the child.

        While a claim is being carried out (a left claim does not count), hints of ready rows are held: the child cannot
        use them before the answer, and each would wake it. If a cancel or a supervisor's look is among the hints, all
        are sent at once.
        """
        if self._claims and all(isinstance(hint, Ready) and not hint.is_look for hint in hints):
            self._held = merged([*self._held, *hints])
        elif self.is_busy or not self._store.make_left_claim(hints):
            self._write(answer(_NO_CALL, hints))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._ended.done():
            return
        try:
            for frame in self._frames.cut(data):
                call = self._loop.create_task(self._carry_out(frame))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)
        except TooLong as error:
            self._ended.set_exception(error)

    def eof_received(self) -> bool:
        if not self._ended.done():
            self._ended.set_result(None)
        return True  # `serve` closes the connection.

    def connection_lost(self, _: Exception | None) -> None:
        self.eof_received()

    async def _carry_out(self, data: bytes) -> None:
        try:
            number, verb, arguments = read_call(data)
        except Exception:
            log.exception("a child sent a call that cannot be read; hanging up")
            self._transport.close()
            return
        is_claim = verb in _CLAIMING
        self._claims += is_claim
        try:
            result = await getattr(self._store, verb)(*arguments)
            self._saw(verb, arguments, result)
            reply = answer(number, result)
        except Exception as error:
            reply = failure(number, error)
        finally:
            self._claims -= is_claim
        if self._held and not self._claims:
            held, self._held = self._held, []
            # Hints first: the claim may not have seen their rows, and the child must know of them when it decides on
            # the next one.
            reply = answer(_NO_CALL, held) + reply
        self._write(reply)

    def _write(self, frame: bytes) -> None:
        with contextlib.suppress(ConnectionError, RuntimeError):  # The child is gone.
            self._transport.write(frame)


def _exit() -> None:
    os._exit(tether.ORPHANED)


class WireClient(asyncio.Protocol):
    """Sends the verbs of `engine.port.WorkerStore` to the supervisor and waits for its answers."""

    def __init__(self, orphaned: Callable[[], None] = _exit) -> None:
        """`orphaned` ends the process: without the supervisor it has no lease, and may do nothing more."""
        self._orphaned = orphaned
        self._frames = Frames()
        self._numbers = itertools.count()
        self._waiting: dict[int, tuple[str, asyncio.Future[Any]]] = {}
        self._loop = asyncio.get_running_loop()
        self.hear: Callable[[list[Hint]], None] = lambda _: None
        """Called with the hints that the supervisor passes on."""

    @classmethod
    async def over(cls, end: socket.socket) -> WireClient:
        _, client = await asyncio.get_running_loop().create_unix_connection(cls, sock=end)
        return client

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        if verb not in VERBS:
            raise AttributeError(verb)
        return partial(self._ask, verb)

    def close(self) -> None:
        self._orphaned = lambda: None
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.cut(data):
                self._hand_out(frame)
        except Exception:
            # No call would be answered any more, while the supervisor kept renewing the lease.
            log.exception("the answers of the supervisor cannot be read; ending")
            self._orphaned()

    def connection_lost(self, _: Exception | None) -> None:
        self._orphaned()

    async def _ask(self, verb: str, *arguments: Any) -> Any:
        number = next(self._numbers)
        waiting = self._loop.create_future()
        self._waiting[number] = verb, waiting
        self._transport.write(call(number, verb, arguments))
        return await waiting

    def _hand_out(self, frame: bytes) -> None:
        number, failed, body = read_answer(frame)
        if number == _NO_CALL:
            self.hear(_hints.decode(body))
            return
        verb, waiting = self._waiting.pop(number)
        if waiting.done():
            return  # The caller was cancelled meanwhile.
        if failed:
            code, words = _failure.decode(body)
            waiting.set_exception(_FAILURES.get(code, RuntimeError)(words))
        else:
            waiting.set_result(_verbs[verb][1].decode(body))


class Frames:
    """Cuts a stream into frames. `data_received` handles each frame as it arrives; a task that reads a `StreamReader`
    would run one turn of the event loop later."""

    def __init__(self, most_bytes: int | None = None) -> None:
        self._most_bytes = most_bytes
        self._rest = bytearray()
        """An incomplete frame."""

    def cut(self, data: bytes) -> list[bytes]:
        """The frames that end in `data`. Raises TooLong at the beginning of a frame of more than `most_bytes`."""
        self._rest += data
        rest, at, found = self._rest, 0, []
        while (body := at + LENGTH) <= len(rest):
            length = int.from_bytes(rest[at:body])
            if self._most_bytes is not None and length > self._most_bytes:
                raise TooLong(f"a frame of {length:,} bytes, and the limit is {self._most_bytes:,}")
            if body + length > len(rest):
                break
            at = body + length
            found.append(bytes(rest[body:at]))
        del rest[:at]
        return found


def call(number: int, verb: str, arguments: tuple[Any, ...]) -> bytes:
    if verb in _REPORTING:
        arguments = ([shortened(one) for one in arguments[0]], *arguments[1:])
    return _framed(number, VERBS.index(verb), arguments)


def read_call(data: bytes) -> tuple[int, str, tuple[Any, ...]]:
    number, index = _HEAD.unpack_from(data)
    verb = VERBS[index]
    return number, verb, _verbs[verb][0].decode(memoryview(data)[_HEAD.size :])


def answer(number: int, result: Any) -> bytes:
    return _framed(number, False, result)


def failure(number: int, error: Exception) -> bytes:
    code = error.code if isinstance(error, RotaError) else ""
    return _framed(number, True, (code, str(error)))


def read_answer(data: bytes) -> tuple[int, bool, memoryview]:
    """The number of the call, whether it failed, and the body."""
    number, failed = _HEAD.unpack_from(data)
    return number, bool(failed), memoryview(data)[_HEAD.size :]


def shortened(report: Finished) -> Finished:
    """The report without the parts that only the child needs, and without a result that the store already has."""
    if report.claim is None and report.written is None and report.step is None:
        return report
    return msgspec.structs.replace(report, claim=None, step=None, written=None if report.written is None else "")


def _framed(number: int, word: int, body: Any) -> bytes:
    data = _encode(body)
    return (_HEAD.size + len(data)).to_bytes(LENGTH) + _HEAD.pack(number, word) + data


def _decoders(verb: str) -> tuple[msgspec.msgpack.Decoder[Any], msgspec.msgpack.Decoder[Any]]:
    """For the arguments of a verb, and for its answer."""
    types = get_type_hints(getattr(WorkerStore, verb))
    gives = types.pop("return")
    takes = GenericAlias(tuple, tuple(types.values()))
    return msgspec.msgpack.Decoder(takes), msgspec.msgpack.Decoder(gives)


_encode = msgspec.msgpack.Encoder().encode
_verbs = {verb: _decoders(verb) for verb in VERBS}
_failure = msgspec.msgpack.Decoder(tuple[str, str])
_hints = msgspec.msgpack.Decoder(list[Hint])
