"""The processes that `rota dev` runs beside the workers of its app: the HTTP API, and a worker without an app.

Only `rota dev` starts this program. It ends with its parent.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from rota import config
from rota.cli import output
from rota.cli.database import Database
from rota.cli.text import LOG_FORMAT
from rota.domain.errors import UsageError
from rota.domain.requirement import Offers
from rota.domain.served import ALL_APPS

STOPPING = (signal.SIGINT, signal.SIGTERM)
HOST, PORT = "127.0.0.1", 8080
STOP_S = 40.0
"""A stop waits for running executions, for `grace_s` at most by default 30 seconds."""


@contextmanager
def services(database: Database, port: int | None, directory: str | None, *, has_app: bool) -> Iterator[None]:
    """Starts the processes, and stops them at the end. Without `port` it is the usual one, if that is free."""
    database.export()  # They read the URL from their environment: every user can read their arguments.
    started = []
    free = _free(port)
    if free is not None:
        started.append(_start(["server", "--port", str(free)]))
        output.message(f"the dashboard is at http://{HOST}:{free}")
        output.message(f"the HTTP API answers at http://{HOST}:{free}/api/v1, and has its documentation at /api/docs")
    if has_app:
        started.append(_start(["worker", *([] if directory is None else ["--directory", directory])]))
    try:
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_S)
            process.kill()
            process.wait()


def wait_for_stop() -> None:
    """Keeps the other processes running after the worker was drained, until a signal."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    for number in STOPPING:
        signal.signal(number, signal.SIG_DFL)  # The end of the worker has left them ignored.
    output.message("the worker was drained, but the HTTP API still answers: Ctrl-C stops it")
    signal.sigwait(STOPPING)


def _free(port: int | None) -> int | None:
    """The port to listen on; None if the usual one is taken."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, PORT if port is None else port))
        except OSError as error:
            if port is not None:
                raise UsageError(f"cannot listen on {HOST}:{port}: {error.strerror}; choose another --port") from None
            output.message(f"port {PORT} is taken, so the HTTP API does not run: --port chooses another one")
            return None
        return int(trial.getsockname()[1])


def _start(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "rota.cli.dev_services", str(os.getpid()), *arguments]
    # A session of its own: Ctrl-C reaches `rota dev` alone, which then stops the others.
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)


def main() -> None:
    from rota.engine.tether import die_with

    parser = argparse.ArgumentParser()
    parser.add_argument("parent", type=int)
    parser.add_argument("what", choices=["server", "worker"])
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--directory")
    arguments = parser.parse_args()
    die_with(arguments.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level="INFO", format=LOG_FORMAT)
    try:
        if arguments.what == "server":
            from rota.cli.serve import Listening, serve

            serve(Database(), Listening(host=HOST, port=arguments.port))
        else:
            from rota.cli.supervise import supervise

            extra = [] if arguments.directory is None else ["--directory", arguments.directory]
            offers = Offers(everything=True)
            supervise(Database(), ALL_APPS, config.load(), None, extra, "INFO", offers, verbose=True)
    except UsageError as error:
        logging.getLogger("rota.engine").error("%s", error)
        sys.exit(1)


if __name__ == "__main__":
    main()
