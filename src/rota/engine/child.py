"""The process that runs user code: one node, tethered to its supervisor.

It says hello once the app is imported, is told which worker it is, and then works until it is drained, must be
replaced, or is no longer allowed to hold anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NoReturn

import msgspec

from rota.clock import Clock
from rota.domain import payload
from rota.domain.errors import LeaseLost
from rota.engine import loop as loops
from rota.engine import tether, wire
from rota.engine.host import DRAIN, FINISH, Hello
from rota.engine.node import Node, Place
from rota.engine.wire_client import WireClient
from rota.executors.port import Executor
from rota.ops.finish import Finished

log = logging.getLogger("rota.engine")

LEAVING = b"leaving"
BLOCKED = b"blocked "
"""Before the report of an attempt that holds the event loop beyond its time."""
EXIT = b"exit "
"""Before the exit code with which the child is about to leave."""


_decode = msgspec.json.Decoder(Place).decode


def say(fd: int, words: bytes) -> None:
    # If the supervisor is gone nobody hears it, and the tether ends us.
    with contextlib.suppress(ConnectionError):
        os.write(fd, words + b"\n")


def end_blocked(fd: int, report: Finished) -> None:
    """The last words of a process whose loop does not answer: what to write of the attempt that holds it."""
    say(fd, BLOCKED + wire.report_line(report))
    leave(fd, tether.BLOCKED)


def announce(fd: int, code: int) -> None:
    """Says with which code the process is about to exit: the supervisor takes any other end for a crash."""
    say(fd, EXIT + str(code).encode())


def leave(fd: int, code: int) -> NoReturn:
    """Ends the process at once, from any thread."""
    announce(fd, code)
    os._exit(code)


def say_hello(fd: int, hello: Hello) -> None:
    # What an app says when it cannot be imported may be anything, and as long as it likes.
    say(fd, msgspec.json.encode(msgspec.structs.replace(hello, error=payload.clean(hello.error))))


def take_pipe() -> int:
    """Moves the pipe from the supervisor off standard input, where user code could read our commands away."""
    pipe = os.dup(sys.stdin.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    return pipe


def wait_for_place(pipe: int) -> Place | None:
    """Blocks until the supervisor says which worker this is; None if it went away instead."""
    line = bytearray()
    # Byte by byte: what follows the first line is for the tether, and a buffer would swallow it.
    while (byte := os.read(pipe, 1)) not in (b"", b"\n"):
        line += byte
    return _decode(line) if line else None


def serve(
    pipe: int,
    words_fd: int,
    store_end: socket.socket,
    clock: Clock,
    place: Place,
    targets: Mapping[str, Executor],
    settled: Callable[[Sequence[Finished]], None] = lambda _: None,
    alone: Mapping[str, Executor] | None = None,
) -> int:
    """Runs a node in this process and returns the exit code."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # The supervisor hears these and decides.
    return loops.run(_serve(pipe, words_fd, store_end, clock, place, targets, settled, alone))


async def _serve(
    pipe: int,
    words_fd: int,
    store_end: socket.socket,
    clock: Clock,
    place: Place,
    targets: Mapping[str, Executor],
    settled: Callable[[Sequence[Finished]], None],
    alone: Mapping[str, Executor] | None,
) -> int:
    loop = asyncio.get_running_loop()
    store = await WireClient.over(store_end)
    leaving, blocked = partial(say, words_fd, LEAVING), partial(end_blocked, words_fd)
    node = Node(store, clock, place, targets, settled, leaving, blocked, alone)
    store.hear = node.hear
    loop.add_signal_handler(signal.SIGTERM, node.drain)

    def obey(command: str) -> None:
        with contextlib.suppress(RuntimeError):  # The event loop is closed, and the process is about to end.
            if command == DRAIN.decode():
                loop.call_soon_threadsafe(node.drain)
            elif command == FINISH.decode():
                loop.call_soon_threadsafe(node.finish)

    tether.follow(pipe, obey, place.lease_s, partial(leave, words_fd))
    try:
        await node.run()
    except LeaseLost as error:
        log.error("stopping: %s", error)
        return tether.LEASE_LOST
    finally:
        store.close()
    return tether.RECYCLE if node.worker.is_tainted else tether.DRAINED
