"""The program of a worker's child process, which runs the jobs of an app. Only the supervisor starts it."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from rota.cli.apps import load_for_worker, process_arguments
from rota.cli.outcome_log import OutcomeLog
from rota.cli.text import LOG_FORMAT, clipped, harmless
from rota.clock import MACHINE
from rota.config import Settings
from rota.domain import job_parameters, trigger_words
from rota.domain.errors import RotaError, StoreUnavailable
from rota.domain.served import ALL_APPS
from rota.engine import child, tether
from rota.engine.host import Hello
from rota.engine.loop import FIRST_BACKOFF_S, LONGEST_BACKOFF_S, run
from rota.engine.tether import Tether
from rota.engine.worker_loops import Assignment
from rota.executors import capture, echo
from rota.executors.process import spawner
from rota.executors.process.exit_process import exit_at_once, exit_in_order
from rota.executors.process.pool import PATIENCE_S, Pool, Recycling
from rota.executors.process.protect_secrets import hide
from rota.sdk.connection import Connection
from rota.sdk.registered_job import RegisteredJob
from rota.sdk.registry import Registry
from rota.store.opening import place_of

log = logging.getLogger("rota.jobs")

MOST_NAMES = 300
MOST_SUSPECTS = 4
"""How many executions suspected of crashing a process may run at once; on a machine with more cores, one per core.
Each runs in its own process."""


def main() -> None:
    """Loads the app, says hello to the supervisor, waits for its assignment, and runs jobs."""
    arguments = _arguments()
    hide()
    Connection.has_supervisor = True
    tether.die_with(arguments.parent)
    spawner.inherit(arguments.spawner_fd, arguments.spawner_pid)
    supervisor = Tether(arguments.words_fd, MACHINE)
    for fd in (arguments.words_fd, arguments.store_fd):
        os.set_inheritable(fd, False)  # Processes that a job starts must not keep our end open after our exit.
    logging.basicConfig(level=arguments.log_level, format=LOG_FORMAT)
    app = _say_hello(arguments, supervisor)
    assignment = child.wait_for_assignment(supervisor)
    _introduce(app, arguments, assignment.queues)
    store_end = socket.socket(fileno=arguments.store_fd)
    capture.install()
    echo.install()
    code = _work(app, arguments, supervisor, store_end, assignment)
    supervisor.announce(code)
    if code in (tether.DRAINED, tether.RECYCLE):
        exit_in_order(code)
    exit_at_once(code)  # The lease or the supervisor is gone: another worker may already run these executions.


def _arguments() -> argparse.Namespace:
    parser = process_arguments()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--words-fd", type=int, required=True)
    parser.add_argument("--store-fd", type=int, required=True)
    parser.add_argument("--spawner-fd", type=int, required=True)
    parser.add_argument("--spawner-pid", type=int, required=True, help="0 if the supervisor has no spawner")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument(
        "--banner", type=Path, help="a file; the child that removes it prints the banner, and its deploy has precedence"
    )
    return parser.parse_args()


def _say_hello(arguments: argparse.Namespace, supervisor: Tether) -> Registry:
    try:
        app = load_for_worker(arguments)
        place_of(app.settings.url)  # Refuses a database in memory, which the supervisor could not share.
        # Only at the start of `rota dev`: a child that replaces another one must not undo a newer deploy.
        is_first = arguments.banner is not None and arguments.banner.exists()
        deploy = None if app.name == ALL_APPS else _declare(app, takes_precedence=is_first)
    except (RotaError, OSError) as error:
        child.say_hello(supervisor, Hello(error=str(error)))
        exit_in_order(tether.UNUSABLE)
    settings, jobs = app.settings, sorted(app.names())
    where = {"namespace": settings.namespace, "others": arguments.also, "url": settings.url}
    hello = Hello(app=app.name, deploy=deploy, jobs=jobs, **where)
    child.say_hello(supervisor, hello)
    return app


def _declare(app: Registry, *, takes_precedence: bool) -> int:
    """Registers the app's declarations; waits while the database is unreachable, locked or full."""
    store_log, backoff_s = logging.getLogger("rota.store"), FIRST_BACKOFF_S
    while True:
        try:
            deploy = app.declare(takes_precedence=takes_precedence)
        except StoreUnavailable as error:
            if not error.may_pass:
                raise
            if backoff_s == FIRST_BACKOFF_S:
                log.warning("cannot join yet, trying again: %s", error)
            store_log.setLevel(logging.ERROR)
            threading.Event().wait(backoff_s)
            backoff_s = min(LONGEST_BACKOFF_S, 2 * backoff_s)
        else:
            store_log.setLevel(logging.NOTSET)
            # The supervisor writes for its workers, so this process needs no connection any more.
            app.close()
            return deploy


def _introduce(app: Registry, arguments: argparse.Namespace, queues: Sequence[str] | None) -> None:
    """Logs what was loaded; the first child of `rota dev` prints a banner with commands to try instead."""
    place = place_of(app.settings.url)
    for name, missing in app.unavailable().items():
        log.warning("this worker cannot run job %s and leaves it to others; it needs: %s", name, harmless(missing))
    if app.name == ALL_APPS:
        log.info("process %d runs commands and requests from their definitions, on %s", os.getpid(), harmless(place))
        return
    if arguments.banner is not None and _removed(arguments.banner):
        _print_banner(app, place)
        return
    served = "all queues" if queues is None else f"the queues {', '.join(queues)}"
    runs = f"it runs {clipped(', '.join(app.jobs), MOST_NAMES)} from {served}" if app.jobs else "it has no jobs"
    for noun, names in (("workflows", app.workflows), ("schedules", app.schedules)):
        runs += f"; {noun}: {clipped(', '.join(names), MOST_NAMES)}" if names else ""
    log.info("process %d has loaded app %s on %s; %s", os.getpid(), app.name, harmless(place), runs)
    if not app.jobs:
        log.warning("app %s has no jobs, so there is nothing to do: declare them in %s", app.name, arguments.app)


def _removed(banner: Path) -> bool:
    try:
        banner.unlink()
    except OSError:
        return False  # Another child has removed it.
    return True


def _print_banner(app: Registry, place: str) -> None:
    schedules = [f"  {name}: {trigger_words.explain(spec.trigger)}" for name, spec in app.schedules.items()]
    lines = [
        f"app {app.name} on {place}",
        "its jobs:" if app.jobs else "it has no jobs yet: decorate a function with @app.job",
        *_signatures(app.jobs),
        *(["its workflows:", *_signatures(app.workflows)] if app.workflows else []),
        *(["its schedules:", *schedules] if schedules else []),
        "in another terminal, try:",
        f"  rota enqueue {_example(app.jobs) or 'JOB'} --wait",
        *([f"  rota start {_example(app.workflows)} --wait", "  rota runs"] if app.workflows else []),
        "  rota executions",
        "  rota queues",
        "  rota doctor",
        "Ctrl-C stops it",
    ]
    print("\n".join(harmless(line) for line in lines), file=sys.stderr, flush=True)


def _signatures(declared: Mapping[str, RegisteredJob]) -> list[str]:
    return [f"  {name}({job_parameters.signature(job.definition.parameters)})" for name, job in declared.items()]


def _example(declared: Mapping[str, RegisteredJob]) -> str:
    """The arguments of a command that starts the first job or workflow; empty if there is none."""
    first = next(iter(declared.values()), None)
    if first is None:
        return ""
    required = [name for name, about in first.definition.parameters.items() if about["required"]]
    return " ".join([first.name, *(f"{name}=…" for name in required)])


def _work(
    app: Registry,
    arguments: argparse.Namespace,
    supervisor: Tether,
    store_end: socket.socket,
    assignment: Assignment,
) -> int:
    isolated, suspects = _pools(arguments, app.settings)
    alone, targets, clock = app.alone(suspects), app.targets(isolated), app.connection.clock
    settled = OutcomeLog(clock, targets, verbose=arguments.verbose).settled
    code = run(child.serve(supervisor, store_end, clock, assignment, targets, settled, alone))
    app.close()
    return code


def _pools(arguments: argparse.Namespace, settings: Settings) -> tuple[Pool, Pool]:
    """Processes for isolated jobs and for executions suspected of a crash, with the app as this process loads it."""
    argv = [sys.executable, "-P", "-m", "rota.cli.job_process", arguments.app, "--log-level", arguments.log_level]
    argv += [f"--given={name}" for name in arguments.given]
    recycling = Recycling(jobs=settings.recycle_jobs, age_s=settings.recycle_s, rss_bytes=settings.recycle_bytes)
    most = max(MOST_SUSPECTS, os.cpu_count() or 1)
    isolated = Pool(argv, most=settings.isolated_processes, recycling=recycling, patience_s=PATIENCE_S)
    return isolated, Pool(argv, most=most, recycling=recycling, is_for_suspects=True)


if __name__ == "__main__":
    main()
