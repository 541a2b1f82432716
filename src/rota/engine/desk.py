"""The supervisor's side: carries out the operations that a child asks for."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence

import msgspec

from rota.engine import wire
from rota.engine.bridge import Bridge
from rota.store.hints import Hint

log = logging.getLogger("rota.engine")


class Desk:
    """Serves one child until it hangs up. Calls may overtake each other, as they do in one process."""

    def __init__(self, bridge: Bridge, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._bridge = bridge
        self._reader = reader
        self._writer = writer
        self._calls: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        try:
            while (data := await wire.read_frame(self._reader)) is not None:
                call = asyncio.create_task(self._carry_out(data))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)
        finally:
            # What was asked for is carried out, whatever became of the child: it held the lease when it asked.
            await asyncio.gather(*self._calls, return_exceptions=True)
            self._writer.close()

    def tell(self, hints: Sequence[Hint]) -> None:
        """Passes hints on to the child."""
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._writer.write(wire.hints(hints))

    async def _carry_out(self, data: bytes) -> None:
        try:
            number, verb, arguments = wire.read_call(data)
        except (msgspec.MsgspecError, KeyError):
            log.exception("a child asked for something that cannot be; hanging up")
            self._writer.close()
            return
        try:
            way = self._bridge.read if verb.reads else self._bridge.transact
            reply = wire.answer(number, await way(verb.op, *arguments))
        except Exception as error:
            reply = wire.failure(number, error)
        with contextlib.suppress(ConnectionError, RuntimeError):
            # A child that is gone needs no answer.
            self._writer.write(reply)
