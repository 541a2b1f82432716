"""The child's end of the wire: a port to the store whose other end is in the supervisor."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import Callable, Sequence
from typing import Any, cast

from rota.domain.note import Piece, State
from rota.domain.requirement import Room
from rota.domain.served import Served
from rota.engine import tether, wire
from rota.engine.port import Attempts
from rota.ops.claim import Claimed, FinishedAndClaimed, Mark
from rota.ops.finish import Finished
from rota.store.hints import Hint

log = logging.getLogger("rota.engine")


def _exit() -> None:
    os._exit(tether.ORPHANED)


class WireClient:
    """Sends verbs to the supervisor and waits for its answers. Implements `engine.port.WorkerStore`."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, orphaned: Callable[[], None] = _exit
    ) -> None:
        """`orphaned` ends the process: without the supervisor it has no lease, and may do nothing more."""
        self._reader = reader
        self._writer = writer
        self._orphaned = orphaned
        self._numbers = itertools.count()
        self._verbs: dict[int, str] = {}
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.hear: Callable[[list[Hint]], None] = lambda _: None
        """Called with the hints that the supervisor passes on."""
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def over(cls, end: socket.socket) -> WireClient:
        return cls(*await asyncio.open_unix_connection(sock=end, limit=wire.BUFFER))

    async def claim(self, served: Served, slots: int, marks: Sequence[Mark] | None, room: Room) -> Claimed:
        return cast("Claimed", await self._ask("claim", served, slots, marks, room))

    async def finish(self, reports: Sequence[Finished]) -> list[str]:
        return cast("list[str]", await self._ask("finish", reports))

    async def finish_and_claim(
        self, reports: Sequence[Finished], served: Served, slots: int, marks: Sequence[Mark] | None, room: Room
    ) -> FinishedAndClaimed:
        return cast("FinishedAndClaimed", await self._ask("finish_and_claim", reports, served, slots, marks, room))

    async def write_notes(self, pieces: Sequence[Piece], states: Sequence[State]) -> list[str]:
        return cast("list[str]", await self._ask("write_notes", pieces, states))

    async def drain(self) -> None:
        await self._ask("drain")

    async def tell_trouble(self, reasons: dict[str, str]) -> None:
        await self._ask("tell_trouble", reasons)

    async def reconcile(self, named: Sequence[str], suspects: Attempts) -> Attempts:
        return cast("Attempts", await self._ask("reconcile", named, suspects))

    async def has_ready(self, served: Served) -> bool:
        return cast("bool", await self._ask("has_ready", served))

    async def cancels(self) -> list[str]:
        return cast("list[str]", await self._ask("cancels"))

    async def holds_more(self, named: Sequence[str]) -> bool:
        return cast("bool", await self._ask("holds_more", named))

    def close(self) -> None:
        self._listening.cancel()
        self._writer.close()

    async def _ask(self, verb: str, *arguments: Any) -> Any:
        number = next(self._numbers)
        waiting = asyncio.get_running_loop().create_future()
        self._verbs[number], self._waiting[number] = verb, waiting
        self._writer.write(wire.call(number, verb, arguments))
        return await waiting

    async def _listen(self) -> None:
        try:
            await self._hand_out()
        except Exception:
            # No call would be answered any more, while the heartbeats went on.
            log.exception("the answers of the supervisor cannot be read; ending")
        self._orphaned()

    async def _hand_out(self) -> None:
        while (data := await wire.read_frame(self._reader)) is not None:
            if (news := wire.read_hints(data)) is not None:
                self.hear(news)
                continue
            number, result = wire.read_answer(data, self._verbs)
            waiting = self._waiting.pop(number)
            if waiting.done():
                continue  # The caller was cancelled meanwhile.
            if isinstance(result, Exception):
                waiting.set_exception(result)
            else:
                waiting.set_result(result)
