"""The program of a worker's child process: not for people, the supervisor starts it."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rota.cli.failure_log import FailureLog
from rota.cli.jobs import parameters
from rota.cli.loading import agree, from_command_line, load_app
from rota.cli.text import clipped, harmless
from rota.config import Settings
from rota.domain.errors import RotaError, StoreUnavailable
from rota.domain.outcome import Cancelled, Expired, Failed, GivenBack, Lost, Snoozed, Succeeded, TimedOut
from rota.engine import child, tether
from rota.engine.host import Hello
from rota.engine.loop import FIRST_BACKOFF_S, LONGEST_BACKOFF_S
from rota.executors import capture, echo
from rota.executors.process import spawner
from rota.executors.process.exiting import exit_at_once, exit_in_order
from rota.executors.process.hiding import hide
from rota.executors.process.pool import PATIENCE_S, Pool, Recycling
from rota.ops.finish import Finished
from rota.sdk.app import App
from rota.sdk.connection import Connection
from rota.store.readonly import place_of

log = logging.getLogger("rota.jobs")

MOST_SUSPECTS = 4
"""So many that may have killed a process run at once, each in one of its own."""
_WORDS = {Cancelled: "cancelled", GivenBack: "given back", Snoozed: "snoozed", Expired: "skipped"}


def main() -> None:
    """Says hello, waits to be told which worker this is, and works."""
    parser = argparse.ArgumentParser()
    parser.add_argument("app")
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--words-fd", type=int, required=True)
    parser.add_argument("--store-fd", type=int, required=True)
    parser.add_argument("--spawner-fd", type=int, required=True)
    parser.add_argument("--spawner-pid", type=int, required=True, help="0 if the supervisor has no spawner")
    parser.add_argument("--url-is-set", action="store_true", help="the command line named the database: ROTA_URL is it")
    parser.add_argument("--namespace")
    parser.add_argument("--log-level", default="INFO")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument(
        "--banner", help="a file; the child that removes it introduces the app, and its deploy takes precedence"
    )
    arguments = parser.parse_args()
    hide()
    Connection.has_supervisor = True
    tether.die_with(arguments.parent)
    pipe = child.take_pipe()
    spawner.inherit(arguments.spawner_fd, arguments.spawner_pid)
    for fd in (arguments.words_fd, arguments.store_fd):
        os.set_inheritable(fd, False)  # What a job starts must not keep our end open after we are gone.
    logging.basicConfig(level=arguments.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        app = _load(arguments.app, *from_command_line(arguments.url_is_set, arguments.namespace))
        # Only at the start of `rota dev`: a child that replaces another one must not undo a deploy that came since.
        is_first = bool(arguments.banner) and Path(arguments.banner).exists()
        deploy = _declare(app, takes_precedence=is_first)
    except (RotaError, OSError) as error:
        child.say_hello(arguments.words_fd, Hello(error=str(error)))
        exit_in_order(tether.UNUSABLE)
    hello = Hello(
        app=app.name,
        namespace=app.settings.namespace,
        url=app.settings.url,
        deploy=deploy,
        jobs=sorted(app.targets()),
    )
    child.say_hello(arguments.words_fd, hello)
    for name, missing in app.unavailable().items():
        log.warning("this worker cannot run job %s and leaves it to others; it needs: %s", name, harmless(missing))
    if not (arguments.banner and _introduce(app, Path(arguments.banner))):
        log.info("process %d has loaded app %s on %s", os.getpid(), app.name, harmless(place_of(app.settings.url)))
        if not app.jobs:
            log.warning("app %s has no jobs, so there is nothing to do: declare them in %s", app.name, arguments.app)
    store_end = socket.socket(fileno=arguments.store_fd)
    capture.install()
    echo.install()
    pools, words_fd = _pools(arguments, app.settings), arguments.words_fd
    code = _work(app, pools, pipe, words_fd, store_end, arguments.verbose)
    child.announce(words_fd, code)
    if code in (tether.DRAINED, tether.RECYCLE):
        exit_in_order(code)
    exit_at_once(code)  # The lease or the supervisor is gone: another worker may already run these executions.


def _pools(arguments: argparse.Namespace, settings: Settings) -> tuple[Pool, Pool]:
    """Processes for jobs that have one of their own, and for suspects, started as this one was."""
    argv = [sys.executable, "-P", "-m", "rota.cli.job_process", arguments.app, "--log-level", arguments.log_level]
    argv += ["--url-is-set"] if arguments.url_is_set else []
    argv += ["--namespace", arguments.namespace] if arguments.namespace else []
    recycling = Recycling(jobs=settings.recycle_jobs, age_s=settings.recycle_s, rss_bytes=settings.recycle_bytes)
    most = max(MOST_SUSPECTS, os.cpu_count() or 1)
    return (
        Pool(argv, recycling=recycling, patience_s=PATIENCE_S),
        Pool(argv, most=most, recycling=recycling, is_for_suspects=True),
    )


def _load(reference: str, url: str | None, namespace: str | None) -> App:
    app = load_app(reference)
    agree(app, url, namespace)
    place_of(app.settings.url)  # Refuses a database in memory, which the supervisor could not share.
    return app


def _declare(app: App, *, takes_precedence: bool) -> int:
    """Waits while the database is away, locked or full: without it the worker cannot start."""
    said, backoff_s = logging.getLogger("rota.store"), FIRST_BACKOFF_S
    while True:
        try:
            deploy = app.declare(takes_precedence=takes_precedence)
        except StoreUnavailable as error:
            if not error.may_pass:
                raise
            if backoff_s == FIRST_BACKOFF_S:
                log.warning("cannot join yet, trying again: %s", error)
            said.setLevel(logging.ERROR)
            threading.Event().wait(backoff_s)
            backoff_s = min(LONGEST_BACKOFF_S, 2 * backoff_s)
        else:
            said.setLevel(logging.NOTSET)
            # The supervisor writes for its workers, so this process needs no connection any more.
            app.close()
            return deploy


def _introduce(app: App, marker: Path) -> bool:
    """Says what there is and what to try, once: later children find the marker gone."""
    try:
        marker.unlink()
    except OSError:
        return False
    names = [f"{name}({parameters(job.definition.parameters)})" for name, job in app.jobs.items()]
    lines = [
        f"app {app.name} on {place_of(app.settings.url)}",
        "its jobs:" if names else "it has no jobs yet: decorate a function with @app.job",
        *(f"  {name}" for name in names),
        "in another terminal, try:",
        f"  rota enqueue {_example(app)} --wait",
        "  rota executions",
        "  rota queues",
        "  rota doctor",
        "Ctrl-C stops it",
    ]
    print("\n".join(harmless(line) for line in lines), file=sys.stderr, flush=True)
    return True


def _example(app: App) -> str:
    first = next(iter(app.jobs.values()), None)
    if first is None:
        return "JOB"
    required = [name for name, about in first.definition.parameters.items() if about["required"]]
    return " ".join([first.name, *(f"{name}=…" for name in required)])


def _work(
    app: App,
    pools: tuple[Pool, Pool],
    pipe: int,
    words_fd: int,
    store_end: socket.socket,
    verbose: bool,
) -> int:
    place = child.wait_for_place(pipe)
    if place is None:
        return tether.ORPHANED
    wanted, suspects = pools
    alone, targets, clock = app.alone(suspects), app.targets(wanted), app.connection.clock
    settled = partial(_log_all, FailureLog(clock, targets, None)) if verbose else FailureLog(clock, targets).settled
    code = child.serve(pipe, words_fd, store_end, clock, place, targets, settled, alone)
    app.close()
    return code


def _log_all(failures: FailureLog, reports: Sequence[Finished]) -> None:
    for report in reports:
        match report.outcome:
            case Succeeded(result=result):
                log.info("%s success %s%s", report.id, report.job, "" if result == "null" else f" {_clipped(result)}")
            case Failed() | TimedOut() | Lost():
                failures.settled([report])
            case other:
                log.info("%s %s %s", report.id, _WORDS.get(type(other), "ended"), report.job)


def _clipped(result: str) -> str:
    return harmless(clipped(result, 120))


if __name__ == "__main__":
    main()
