"""The writes of one step of the event loop reach the transport as one."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from rota.api.joined_writes import MOST_BYTES, JoinedWrites


class Transport:
    def __init__(self) -> None:
        self.calls: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def close(self) -> None:
        self.calls.append("close")

    def is_closing(self) -> bool:
        return "close" in self.calls


def joined() -> tuple[JoinedWrites, Transport]:
    inner = Transport()
    return JoinedWrites(cast("Any", inner), asyncio.get_running_loop()), inner


async def test_writes_of_one_step_are_joined() -> None:
    transport, inner = joined()
    transport.write(b"head ")
    transport.write(b"body")
    assert inner.calls == []
    await asyncio.sleep(0)
    assert inner.calls == [b"head body"]
    transport.write(b"next")
    await asyncio.sleep(0)
    assert inner.calls == [b"head body", b"next"]


async def test_many_bytes_are_sent_at_once() -> None:
    transport, inner = joined()
    transport.write(b"head ")
    transport.write(b"x" * MOST_BYTES)
    assert inner.calls == [b"head " + b"x" * MOST_BYTES]
    await asyncio.sleep(0)
    assert len(inner.calls) == 1


async def test_a_close_sends_the_rest_first() -> None:
    transport, inner = joined()
    transport.write(b"answer")
    transport.close()
    assert inner.calls == [b"answer", "close"]
    assert transport.is_closing()
