"""The program of a worker's child process: not for people, the supervisor starts it."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from rota.cli.jobs import parameters
from rota.cli.loading import agree, load_app
from rota.cli.text import clipped, harmless
from rota.config import Settings
from rota.domain.errors import RotaError, StoreUnavailable
from rota.domain.outcome import Cancelled, Expired, Failed, GivenBack, Snoozed, Succeeded, TimedOut
from rota.engine import child, tether
from rota.executors import capture
from rota.executors.process import PATIENCE_S, Pool, Recycling
from rota.ops.finish import Finished
from rota.sdk.app import App
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
    parser.add_argument("--url")
    parser.add_argument("--namespace")
    parser.add_argument("--log-level", default="INFO")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--banner", help="a file; the child that removes it introduces the app")
    arguments = parser.parse_args()
    tether.die_with(arguments.parent)
    pipe = child.take_pipe()
    for fd in (arguments.words_fd, arguments.store_fd):
        os.set_inheritable(fd, False)  # What a job starts must not keep our end open after we are gone.
    logging.basicConfig(level=arguments.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # Settings that the operator gave on the command line must reach the app before it is made.
    for name in ("url", "namespace"):
        if value := getattr(arguments, name):
            os.environ[f"ROTA_{name.upper()}"] = value
    try:
        app = _load(arguments.app, arguments.url, arguments.namespace)
    except (RotaError, OSError) as error:
        child.say_hello(arguments.words_fd, child.Hello(error=str(error)))
        _exit(tether.UNUSABLE)
    hello = child.Hello(app=app.name, namespace=app.settings.namespace, url=app.settings.url)
    child.say_hello(arguments.words_fd, hello)
    if not (arguments.banner and _introduce(app, Path(arguments.banner))):
        log.info("process %d has loaded app %s on %s", os.getpid(), app.name, harmless(place_of(app.settings.url)))
        if not app.jobs:
            log.warning("app %s has no jobs, so there is nothing to do: declare them in %s", app.name, arguments.app)
    store_end = socket.socket(fileno=arguments.store_fd)
    leaving = partial(child.say, arguments.words_fd, child.LEAVING)
    blocked = partial(child.end_blocked, arguments.words_fd)
    capture.install()
    _exit(_work(app, _pools(arguments, app.settings), pipe, store_end, arguments.verbose, leaving, blocked))


def _pools(arguments: argparse.Namespace, settings: Settings) -> tuple[Pool, Pool]:
    """Processes for jobs that have one of their own, and for suspects, started as this one was."""
    argv = [sys.executable, "-m", "rota.cli.body", arguments.app, "--log-level", arguments.log_level]
    for name in ("url", "namespace"):
        if value := getattr(arguments, name):
            argv += [f"--{name}", value]
    recycling = Recycling(jobs=settings.recycle_jobs, age_s=settings.recycle_s, rss_bytes=settings.recycle_bytes)
    most = max(MOST_SUSPECTS, os.cpu_count() or 1)
    return (
        Pool(argv, recycling=recycling, patience_s=PATIENCE_S),
        Pool(argv, most=most, recycling=recycling, is_apart=True),
    )


def _load(reference: str, url: str | None, namespace: str | None) -> App:
    app = load_app(reference)
    agree(app, url, namespace)
    place_of(app.settings.url)  # Refuses a database in memory, which the supervisor could not share.
    _register(app)
    # The jobs are known now. What a worker writes goes through its supervisor: no connection is kept.
    app.close()
    return app


def _register(app: App) -> None:
    """Waits for a database that is away, which the store says once: a worker has nothing better to do."""
    said = logging.getLogger("rota.store")
    while True:
        try:
            app.declare_schedules()
        except StoreUnavailable as error:
            if not error.may_pass:
                raise
            said.setLevel(logging.ERROR)
        else:
            said.setLevel(logging.NOTSET)
            return


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
    store_end: socket.socket,
    verbose: bool,
    leaving: Callable[[], None],
    blocked: Callable[[Finished], None],
) -> int:
    place = child.wait_for_place(pipe)
    if place is None:
        return tether.ORPHANED
    settled: Callable[[Sequence[Finished]], Any] = _log_reports if verbose else lambda _: None
    wanted, suspects = pools
    alone, targets, clock = app.alone(suspects), app.targets(wanted), app.connection.clock
    code = child.serve(pipe, store_end, clock, place, targets, settled, leaving, blocked, alone)
    app.close()
    return code


def _exit(code: int) -> NoReturn:
    """Ends at once: a thread of user code that does not stop must not keep the process alive."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _log_reports(reports: Sequence[Finished]) -> None:
    for report in reports:
        match report.outcome:
            case Succeeded(result=result):
                log.info("%s success %s%s", report.id, report.job, "" if result == "null" else f" {_clipped(result)}")
            case Failed(error=error) | TimedOut(error=error):
                log.warning("%s failed %s: %s", report.id, report.job, harmless(f"{error.type}: {error.message[:200]}"))
            case other:
                log.info("%s %s %s", report.id, _WORDS.get(type(other), "ended"), report.job)


def _clipped(result: str) -> str:
    return harmless(clipped(result, 120))


if __name__ == "__main__":
    main()
