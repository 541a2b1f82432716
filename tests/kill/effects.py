"""Outside effects: what a job sends to the receiver, and what the receiver answers and writes down."""

from __future__ import annotations

import asyncio
import os
import socket
from enum import StrEnum
from pathlib import Path

import msgspec

FILE = "effects.jsonl"
ADDRESS = "KILL_RECEIVER"
LARGEST = 4096
PATIENCE_S = 120.0
"""Longer than any process is stopped: its clock runs meanwhile."""


class Answer(StrEnum):
    """What the receiver makes of an effect."""

    DONE = "done"
    ALREADY = "already done"
    STALE = "stale"
    COUNTED = "counted"


class Effect(msgspec.Struct, frozen=True):
    """One thing that an attempt wants done outside. A fenced one may be refused; the others just happen."""

    id: str
    fence: int
    kind: str
    fenced: bool
    pid: int


class Recorded(msgspec.Struct, frozen=True):
    """A line of the receiver's file."""

    effect: Effect
    answer: Answer
    at: int
    """When, in microseconds since 1970 UTC."""


def address(name: str) -> str:
    """An abstract Unix socket: no path to be too long, and it goes away with the receiver."""
    return f"\0{name}"


def send(effect: Effect) -> Answer:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(PATIENCE_S)
        line.connect(address(os.environ[ADDRESS]))
        line.sendall(msgspec.json.encode(effect))
        line.shutdown(socket.SHUT_WR)
        return Answer(line.recv(LARGEST).decode())


async def asend(effect: Effect) -> Answer:
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.setblocking(False)
        async with asyncio.timeout(PATIENCE_S):
            await loop.sock_connect(line, address(os.environ[ADDRESS]))
            await loop.sock_sendall(line, msgspec.json.encode(effect))
            line.shutdown(socket.SHUT_WR)
            return Answer((await loop.sock_recv(line, LARGEST)).decode())


def recorded(folder: Path) -> list[Recorded]:
    """Everything that the receiver has written down, in the order of its decisions."""
    lines = (folder / FILE).read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Recorded) for line in lines]
