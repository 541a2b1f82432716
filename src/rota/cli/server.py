"""`rota server`: the HTTP API."""

from __future__ import annotations

import logging

import click

from rota.cli import output
from rota.cli.database import Database, with_database
from rota.cli.text import LOG_FORMAT

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8080


@click.command()
@click.option("--host", default=DEFAULT_HOST, metavar="ADDRESS", help="The address to listen on (127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, metavar="N", help="The port (8080).")
@click.option("--uds", type=click.Path(), metavar="FILE", help="A Unix socket instead of a port.")
@click.option("--processes", type=click.IntRange(1, 64), default=1, metavar="N", help="Processes that answer (1).")
@click.option("--tls-cert", type=click.Path(exists=True), metavar="FILE", help="A certificate: serve HTTPS.")
@click.option("--tls-key", type=click.Path(exists=True), metavar="FILE", help="The key of the certificate.")
@click.option("--no-auth", is_flag=True, help="Let every caller on this machine do everything.")
@with_database
def server(
    database: Database,
    host: str,
    port: int,
    uds: str | None,
    processes: int,
    tls_cert: str | None,
    tls_key: str | None,
    no_auth: bool,
) -> None:
    """Serve the HTTP API until Ctrl-C or SIGTERM.

    Without tokens it listens only on this machine. `rota tokens create` makes the first token; from then on every
    caller needs one.

    SIGHUP replaces the processes, with new code if there is some, without refusing a request.

    \b
    rota server
    rota server --host 0.0.0.0 --port 443 --tls-cert rota.pem --tls-key rota.key
    """
    from rota.cli.serve import Listening, serve  # lazy: `rota --help` does not need the API

    logging.basicConfig(level="INFO", format=LOG_FORMAT)
    where = Listening(
        host=host, port=port, uds=uds, processes=processes, cert=tls_cert, key=tls_key, is_auth_off=no_auth
    )
    serve(database, where)
    output.message("stopped")
