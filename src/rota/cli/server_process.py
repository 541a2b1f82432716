"""A process that answers requests of the HTTP API. Only `cli/serve.py` starts it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys

import msgspec
import uvicorn

from rota import config
from rota.api.asgi import Api
from rota.api.http_protocol import protocol_of
from rota.api.routes import table
from rota.api.services import Exposure, Services
from rota.cli.serve import REPLACED, SIGNALS, Listening
from rota.cli.text import LOG_FORMAT
from rota.clock import SystemClock
from rota.domain.decoding import prepare
from rota.domain.errors import RotaError
from rota.engine import tether
from rota.executors.process.protect_secrets import hide
from rota.store import reader
from rota.store.opening import open_store

prepare(Listening)
LINGER_S = 5.0
"""How long a stopping process waits for the last request of connections that stay open: its answer closes them."""


class _Server(uvicorn.Server):
    """Says when it answers, and closes connections only after a request, or after they were quiet for a while."""

    def __init__(self, about: uvicorn.Config, services: Services, says: int) -> None:
        super().__init__(about)
        self._services, self._says = services, says

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        with contextlib.suppress(RotaError):
            await self._services.read(reader.clock)  # Connects before the first request comes.
        await super().startup(sockets)
        os.write(self._says, b"1")
        os.close(self._says)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._services.is_draining = True
        for server in self.servers:
            server.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                await self._all_closed()
        await super().shutdown(sockets)

    async def _all_closed(self) -> None:
        """uvicorn does not say when a connection closes."""
        while self.server_state.connections and not self.force_exit:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def main() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    tether.die_with(os.getppid())
    hide()
    bound, says = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    where = msgspec.json.decode(sys.argv[3], type=Listening)
    logging.basicConfig(level="INFO", format=LOG_FORMAT)
    logging.getLogger("uvicorn").setLevel("WARNING")
    settings, clock = config.load(), SystemClock()
    store = open_store(settings.url, clock, busy_s=settings.busy_s, listen_url=settings.listen_url, purpose="server")
    exposure = Exposure(
        is_local=where.is_local,
        is_auth_off=where.is_auth_off,
        allowed_hosts=settings.allowed_hosts,
        public_url=settings.public_url,
        cors_origins=settings.cors_origins,
        trusted_proxies=settings.trusted_proxies,
    )
    services = Services(store, clock, settings, exposure)
    signal.signal(REPLACED, lambda *_: setattr(services, "is_replaced", True))
    about = uvicorn.Config(
        Api(services, table()),
        lifespan="on",
        loop="uvloop",
        http=protocol_of(services),
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(settings.grace_s)),  # With 0 it logs an error even without requests.
        ssl_certfile=where.cert,
        ssl_keyfile=where.key,
    )
    try:
        _Server(about, services, says).run(sockets=[bound])
    finally:
        services.close()


if __name__ == "__main__":
    main()
