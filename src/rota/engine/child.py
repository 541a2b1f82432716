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

import msgspec

from rota.clock import Clock
from rota.domain import payload
from rota.domain.errors import LeaseLost
from rota.engine import running, tether, wire
from rota.engine.distant import DistantBridge
from rota.engine.node import Node, Place
from rota.executors import tree
from rota.executors.function import FunctionTarget
from rota.executors.port import Executor
from rota.ops.finish import Finished

log = logging.getLogger("rota.engine")


DRAIN = b"drain"
FINISH = b"finish"
"""Take nothing more, and end when what runs has ended by itself."""
LEAVING = b"leaving"
BLOCKED = b"blocked "
"""Before the report of an attempt that holds the event loop beyond its time."""


class Hello(msgspec.Struct, frozen=True):
    """The child's first words to its supervisor: the app it has and where that lives, or why it cannot work."""

    app: str = ""
    namespace: str = ""
    url: str = ""
    error: str = ""


def say(fd: int, words: bytes) -> None:
    # If the supervisor is gone nobody hears it, and the tether ends us.
    with contextlib.suppress(BrokenPipeError):
        os.write(fd, words + b"\n")


def end_blocked(fd: int, report: Finished) -> None:
    """The last words of a process whose loop does not answer: what to write of the attempt that holds it."""
    say(fd, BLOCKED + wire.report_line(report))
    os._exit(tether.BLOCKED)


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
    return msgspec.json.decode(line, type=Place) if line else None


def serve(
    pipe: int,
    store_end: socket.socket,
    clock: Clock,
    place: Place,
    targets: Mapping[str, FunctionTarget | Executor],
    settled: Callable[[Sequence[Finished]], None] = lambda _: None,
    leaving: Callable[[], None] = lambda: None,
    blocked: Callable[[Finished], None] | None = None,
    alone: Mapping[str, Executor] | None = None,
) -> int:
    """Runs a node in this process and returns the exit code."""
    tree.put_on(tree.mark_for(os.getpid(), 0), {})
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # The supervisor hears these and decides.
    return running.run(_serve(pipe, store_end, clock, place, targets, settled, leaving, blocked, alone))


async def _serve(
    pipe: int,
    store_end: socket.socket,
    clock: Clock,
    place: Place,
    targets: Mapping[str, FunctionTarget | Executor],
    settled: Callable[[Sequence[Finished]], None],
    leaving: Callable[[], None],
    blocked: Callable[[Finished], None] | None,
    alone: Mapping[str, Executor] | None,
) -> int:
    loop = asyncio.get_running_loop()
    bridge = await DistantBridge.over(store_end)
    node = Node(bridge, clock, place, targets, settled, leaving, blocked, alone)
    bridge.hear = node.hear
    loop.add_signal_handler(signal.SIGTERM, node.drain)

    def obey(command: str) -> None:
        if command == DRAIN.decode():
            loop.call_soon_threadsafe(node.drain)
        elif command == FINISH.decode():
            loop.call_soon_threadsafe(node.finish)

    tether.follow(pipe, obey, place.lease_s)
    try:
        await node.run()
    except LeaseLost as error:
        log.error("stopping: %s", error)
        return tether.LEASE_LOST
    finally:
        bridge.close()
    return tether.RECYCLE if node.worker.is_tainted else tether.DRAINED
