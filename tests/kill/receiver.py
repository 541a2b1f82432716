"""The world outside: a process that carries out effects, and refuses those with an old fence.

It behaves like a payment gateway that knows fences and takes the execution's id as idempotency key: of the fenced
effects of one execution the first with a fence at least as high as every other seen is carried out, an older one is
refused, and a repeat is answered "already done". Effects without a fence are carried out and counted, however often.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import msgspec

from tests.kill.effects import FILE, LARGEST, Answer, Effect, Recorded, address

BACKLOG = 1024


class Ledger:
    """The decisions, without the network; the checker repeats them from the file."""

    def __init__(self) -> None:
        self._highest: dict[str, int] = {}
        self._done: set[str] = set()

    def decide(self, effect: Effect) -> Answer:
        if not effect.fenced:
            return Answer.COUNTED
        if effect.fence < self._highest.get(effect.id, 0):
            return Answer.STALE
        self._highest[effect.id] = effect.fence
        if effect.id in self._done:
            return Answer.ALREADY
        self._done.add(effect.id)
        return Answer.DONE


class Receiver:
    """Decides, writes the decision down, and only then answers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ledger = Ledger()

    async def serve(self, name: str) -> None:
        server = await asyncio.start_unix_server(self._answer, address(name), backlog=BACKLOG)
        # A process that sees the file may send: no request is answered before this coroutine waits.
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        async with server:
            await server.serve_forever()

    def record(self, effect: Effect) -> Answer:
        answer = self._ledger.decide(effect)
        line = msgspec.json.encode(Recorded(effect, answer, time.time_ns() // 1000))
        os.write(self._file, line + b"\n")
        return answer

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            # A sender that was killed in the middle of its message has sent nothing.
            effect = msgspec.json.decode(await reader.read(LARGEST), type=Effect)
            writer.write(self.record(effect).encode())
            await writer.drain()
        except (msgspec.MsgspecError, OSError):
            return
        finally:
            writer.close()


if __name__ == "__main__":
    asyncio.run(Receiver(Path(sys.argv[1]) / FILE).serve(sys.argv[2]))
