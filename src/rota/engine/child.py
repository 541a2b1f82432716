"""The process that runs user code: the loops of one worker, tethered to its supervisor.

It says hello once the app is imported, waits until the supervisor has sent its worker number, and then works until it
is drained, must be replaced, or has lost its lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import cast

import msgspec

from rota.clock import Clock
from rota.domain import payload
from rota.domain.errors import LeaseLost
from rota.engine import tether, wire
from rota.engine.host import Hello
from rota.engine.port import WorkerStore
from rota.engine.tether import Tether
from rota.engine.worker_loops import Assignment, WorkerLoops
from rota.executors.port import Executor
from rota.ops.finish import Finished

log = logging.getLogger("rota.engine")

_decode = msgspec.json.Decoder(Assignment).decode


def say_hello(supervisor: Tether, hello: Hello) -> None:
    # The error of an app that cannot be imported may contain anything, and be of any length.
    supervisor.say(msgspec.json.encode(msgspec.structs.replace(hello, error=payload.clean(hello.error))))


def wait_for_assignment(supervisor: Tether) -> Assignment:
    """Blocks until the supervisor says which worker this is."""
    line = supervisor.next()
    assert line is not None, "there is no time limit"
    return _decode(line)


async def serve(
    supervisor: Tether,
    store_end: socket.socket,
    clock: Clock,
    assignment: Assignment,
    targets: Mapping[str, Executor],
    settled: Callable[[Sequence[Finished]], None] = lambda _: None,
    alone: Mapping[str, Executor] | None = None,
) -> int:
    """Runs the loops until they end, and returns the exit code."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # The supervisor gets these signals and decides.
    loop, store = asyncio.get_running_loop(), await wire.WireClient.over(store_end)

    def end_blocked(report: Finished) -> None:
        """Called in a thread while an attempt blocks the event loop beyond its timeout."""
        supervisor.say(tether.REPORT + msgspec.json.encode(wire.shortened(report)))
        supervisor.leave(tether.BLOCKED)

    leaving = partial(supervisor.say, tether.LEAVING)
    loops = WorkerLoops(cast("WorkerStore", store), clock, assignment, targets, settled, leaving, end_blocked, alone)
    store.hear = loops.hear
    loop.add_signal_handler(signal.SIGTERM, loops.drain)
    commands = {tether.DRAIN: loops.drain, tether.FINISH: loops.finish}

    def obey(command: bytes) -> None:
        with contextlib.suppress(RuntimeError):  # The event loop is closed, and the process is about to end.
            if command in commands:
                loop.call_soon_threadsafe(commands[command])

    supervisor.follow(obey, assignment.lease_s)
    try:
        await loops.run()
    except LeaseLost as error:
        log.error("stopping: %s", error)
        return tether.LEASE_LOST
    finally:
        store.close()
    return tether.RECYCLE if loops.worker.is_tainted else tether.DRAINED
