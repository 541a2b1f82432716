"""The child's side: a bridge whose other end is in the supervisor."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from rota.engine import tether, wire
from rota.store.hints import Hint
from rota.store.port import Tx, View

log = logging.getLogger("rota.engine")

P = ParamSpec("P")
T = TypeVar("T")


class DistantBridge:
    """Sends operations to the supervisor and waits for its answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count()
        self._names: dict[int, str] = {}
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.hear: Callable[[list[Hint]], None] = lambda _: None
        """What to do with the hints that the supervisor passes on."""
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def over(cls, end: socket.socket) -> DistantBridge:
        return cls(*await asyncio.open_unix_connection(sock=end, limit=wire.BUFFER))

    async def transact(self, op: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return cast("T", await self._ask(op, args))

    async def read(self, query: Callable[Concatenate[View, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return cast("T", await self._ask(query, args))

    def close(self) -> None:
        self._listening.cancel()
        self._writer.close()

    async def _ask(self, op: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        number, name = next(self._numbers), wire.NAMES[op]
        waiting = asyncio.get_running_loop().create_future()
        self._names[number], self._waiting[number] = name, waiting
        self._writer.write(wire.call(number, name, args))
        return await waiting

    async def _listen(self) -> None:
        try:
            await self._hand_out()
        except Exception:
            # Nobody would be answered any more, while the heartbeats went on.
            log.exception("the answers of the supervisor cannot be read; ending")
        # Without the supervisor there is no lease: whatever this process would do now, it may not.
        os._exit(tether.ORPHANED)

    async def _hand_out(self) -> None:
        while (data := await wire.read_frame(self._reader)) is not None:
            if (news := wire.read_hints(data)) is not None:
                self.hear(news)
                continue
            number, result = wire.read_answer(data, self._names)
            waiting = self._waiting.pop(number)
            if waiting.done():
                continue  # Whoever asked was cancelled meanwhile.
            if isinstance(result, Exception):
                waiting.set_exception(result)
            else:
                waiting.set_result(result)
