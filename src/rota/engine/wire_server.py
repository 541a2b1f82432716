"""The supervisor's end of the wire: carries out the verbs that a child asks for, for its own worker and no other."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rota.engine import wire
from rota.engine.port import WorkerStore
from rota.store.hints import Hint

log = logging.getLogger("rota.engine")
Saw = Callable[[str, tuple[Any, ...], Any], None]
"""Called with every verb that was carried out, its arguments and its answer."""


class WireServer:
    """Serves one child until it hangs up. Calls may overtake each other, as they do in one process."""

    def __init__(
        self,
        store: WorkerStore,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        saw: Saw = lambda verb, arguments, answer: None,
    ) -> None:
        self._store = store
        self._reader = reader
        self._writer = writer
        self._saw = saw
        self._calls: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Raises TooLong for a frame above the limit: it is not read, so the stream cannot be read any further."""
        try:
            while (data := await wire.read_frame(self._reader, wire.MOST_BYTES)) is not None:
                call = asyncio.create_task(self._carry_out(data))
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)
        finally:
            # Calls that arrived are carried out even if the child is gone: it held the lease when it made them.
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
            log.exception("a child sent a call that cannot be read; hanging up")
            self._writer.close()
            return
        try:
            result = await getattr(self._store, verb)(*arguments)
            self._saw(verb, arguments, result)
            reply = wire.answer(number, result)
        except Exception as error:
            reply = wire.failure(number, error)
        with contextlib.suppress(ConnectionError, RuntimeError):  # The child is gone.
            self._writer.write(reply)
