"""A server that listens on a port of this machine, in a thread of the test's process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from tests.api.server import Server
from tests.support.waiting import eventually


@contextmanager
def listening(server: Server) -> Iterator[str]:
    """The URL of the server."""
    bound = socket.create_server(("127.0.0.1", 0))
    about = uvicorn.Config(server.api, lifespan="on", log_config=None, access_log=False)
    running = uvicorn.Server(about)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        eventually(lambda: running.started, what="a server that answers")
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join(30)
        bound.close()
