"""What the peers keep their jobs in, new for each: a database of the run's server, a file, or a server of its own.

Redis and RabbitMQ are those of the system, if it has them; they listen on loopback only and end with the measurement.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

from benchmarks.peers.catalogue import Peer
from benchmarks.processes import started
from benchmarks.site import Site
from benchmarks.steady import until
from tests.support.daemons import LOCALHOST, free_port

START_S = 60.0
_RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


def missing(broker: str) -> str:
    """Why there can be none of this kind; empty if there can."""
    if broker == "redis" and shutil.which("redis-server") is None:
        return "redis-server is not installed"
    if broker == "rabbitmq" and not (_RABBITMQ.exists() and shutil.which("epmd")):
        return "rabbitmq-server is not installed"
    return ""


@contextlib.contextmanager
def broker(peer: Peer, site: Site, folder: Path) -> Iterator[str]:
    """The URL of an empty one."""
    if peer.broker == "sqlite":
        yield f"sqlite:///{folder / 'peer.db'}"
    elif peer.broker == "postgresql":
        assert site.server is not None
        name = site.server.create_database()
        try:
            yield site.server.url(name)
        finally:
            site.server.drop_database(name)
    else:
        with _redis(folder) if peer.broker == "redis" else _rabbitmq(folder) as url:
            yield url


@contextlib.contextmanager
def _redis(folder: Path) -> Iterator[str]:
    """As it is mostly run for queues: in memory, nothing on the disk."""
    port = free_port()
    options = ["--bind", LOCALHOST, "--port", str(port), "--save", "", "--appendonly", "no", "--dir", str(folder)]
    with started(["redis-server", *options], {}, folder / "redis.log"):
        until(lambda: listens(port), "Redis", START_S)
        yield f"redis://{LOCALHOST}:{port}"


@contextlib.contextmanager
def _rabbitmq(folder: Path) -> Iterator[str]:
    """With the name server that Erlang needs, which would otherwise be started in the background and stay."""
    names, port, distribution = free_port(), free_port(), free_port()
    environment = {
        "ERL_EPMD_PORT": str(names),
        "ERL_EPMD_ADDRESS": LOCALHOST,
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"bench{os.getpid()}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": LOCALHOST,
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
    }
    with contextlib.ExitStack() as stack:
        stack.enter_context(started(["epmd", "-port", str(names)], environment, folder / "epmd.log"))
        until(lambda: listens(names), "Erlang's name server", START_S)
        stack.enter_context(started([str(_RABBITMQ)], environment, folder / "rabbitmq.log"))
        until(lambda: listens(port), "RabbitMQ", START_S)
        yield f"amqp://guest:guest@{LOCALHOST}:{port}"


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((LOCALHOST, port), timeout=1):
        return True
    return False
