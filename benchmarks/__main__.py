"""`python -m benchmarks`: measures, then shows a table and writes JSON lines. Times are reported, never asserted."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import rota
from benchmarks import (
    crowd,
    dashboard,
    events,
    executors,
    http,
    load,
    orchestration,
    place,
    raw,
    report,
    sections,
    site,
    timetable,
)
from benchmarks.figures import catalogue
from benchmarks.growth import growth
from benchmarks.peers import canvas, compare, environment, prefork
from benchmarks.sections import Section
from benchmarks.site import KINDS, Site
from benchmarks.sizes import FULL, QUICK, SMOKE, Size

SECTIONS: dict[str, Section] = {
    "raw": sections.raw_limits,
    "enqueue": sections.enqueue,
    "drain": sections.drain,
    "burst": sections.burst,
    "latency": sections.latency,
    "half": load.half,
    "priority": load.priority,
    "kinds": executors.kinds,
    "spoken": executors.spoken,
    "prefork": prefork.prefork,
    "idle": sections.idle,
    "peers": compare.peers,
    "brokers": compare.brokers,
    "snapshot": load.snapshot,
    "crowd": crowd.crowd,
    "fleet": crowd.fleet,
    "next": timetable.upcoming,
    "steady": timetable.steady,
    "herd": timetable.herd,
    "timers": compare.timers,
    "workflows": orchestration.workflows,
    "sleepers": orchestration.sleepers,
    "canvas": canvas.canvas,
    "events": events.events,
    "http": http.http_api,
    "dashboard": dashboard.dashboard,
    "growth": growth,
}
SLOW = {
    "idle",
    "brokers",
    "snapshot",
    "crowd",
    "fleet",
    "steady",
    "herd",
    "timers",
    "workflows",
    "sleepers",
    "canvas",
    "events",
    "http",
    "dashboard",
    "growth",
}
WITH_PEERS = {"peers", "brokers", "timers", "prefork", "canvas"}
ALIASES = {
    "pickup": ["latency"],
    "memory": ["idle"],
    "executors": ["kinds", "spoken", "prefork", "crowd"],
    "workflows": ["workflows", "canvas"],
}
DISK_S = 0.3
MOST_ROUNDS = 20


class Measured:
    """The measurements so far."""

    def __init__(self, size: Size, where: Site) -> None:
        self._size = size
        self._site = where
        self.samples: dict[str, list[float]] = defaultdict(list)
        self.disk: dict[str, list[float]] = defaultdict(list)
        self.failures: dict[str, str] = {}

    def measure(self, names: Sequence[str]) -> None:
        """Round by round through the quick sections, then through the slow ones."""
        self._measure([name for name in names if name not in SLOW])
        self._measure([name for name in names if name in SLOW])

    def _measure(self, names: Sequence[str]) -> None:
        """Starts no further round when the time is up; each section has at least one."""
        began = time.perf_counter()
        for number in range(1, self._size.rounds + 1):
            for name in names:
                is_late = number > 1 and time.perf_counter() - began > self._size.budget_s
                if not is_late and number <= self._rounds(name) and name not in self.failures:
                    self._try(name, number)

    def _rounds(self, name: str) -> int:
        return min(self._size.rounds, self._size.slow_rounds) if name in SLOW else self._size.rounds

    def _try(self, name: str, number: int) -> None:
        """An error in one section ends that section, not the run."""
        began = time.perf_counter()
        try:
            self._round(name)
        except Exception as error:
            self.failures[name] = f"{type(error).__name__}: {error}"
            say(f"{name}: given up: {error}")
        else:
            say(f"{name}: round {number} of {self._rounds(name)} took {time.perf_counter() - began:.0f} s")

    def _round(self, name: str) -> None:
        commits_per_s = raw.commits_per_s(self._site, min(DISK_S, self._size.raw_s))
        for figure, value in SECTIONS[name](self._site, self._size):
            self.samples[figure].append(value)
            self.disk[figure].append(commits_per_s)
            say(f"  {figure}: {value:,.2f}")


def main() -> int:
    arguments = _arguments()
    _be_alone()
    size = _size(arguments)
    parent: Path = arguments.folder or place.disk_folder()
    # Servers create their folders among the temporary files, which must not be in memory here.
    tempfile.tempdir = str(parent)
    peers, names = _peers(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="rota-benchmarks-") as name,
        site.opened(arguments.url, Path(name)) as where,
    ):
        run = _run(where, peers)
        say(f"{run.machine}; {run.database}; peers: {peers}")
        measured = Measured(size, where)
        measured.measure(names)
    found = report.results(catalogue(size, arguments.url), measured.samples, measured.disk)
    failures = [report.Failure(section=name, error=error) for name, error in measured.failures.items()]
    text = report.lines(run, found, failures)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(text)
    print(text if arguments.json else _for_people(run, found, failures))
    return 1 if failures else 0


def _size(arguments: argparse.Namespace) -> Size:
    size = (SMOKE if arguments.smoke else QUICK if arguments.quick else FULL).on(arguments.url)
    if arguments.rounds:
        size = msgspec.structs.replace(size, rounds=min(arguments.rounds, MOST_ROUNDS))
    if arguments.snapshot_minutes:
        size = msgspec.structs.replace(size, snapshot_s=60 * arguments.snapshot_minutes)
    return size


def _peers(arguments: argparse.Namespace) -> tuple[str, list[str]]:
    """What the peers are, or why there are none; and the sections that can be measured."""
    without = [name for name in arguments.only if name not in WITH_PEERS]
    if arguments.no_peer or arguments.smoke or without == arguments.only:
        return "not asked for", without
    if trouble := environment.install():
        return trouble, without
    notes = [compare.versions(), *compare.left_out()]
    if "canvas" in arguments.only:
        notes += canvas.prepare()
    return "; ".join(notes), arguments.only


def say(text: str) -> None:
    """Prints progress on standard error."""
    print(text, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="about a minute, one round, less data")
    sizes.add_argument("--smoke", action="store_true", help="a few seconds, to see that it runs; figures mean nothing")
    parser.add_argument(
        "--url", choices=KINDS, default=KINDS[0], help="the kind of database; a PostgreSQL server is brought along"
    )
    parser.add_argument("--only", type=_names, default=list(SECTIONS), help=f"of {','.join(SECTIONS)}")
    parser.add_argument(
        "--rounds", type=int, help="of all sections but the slow ones; the default is 3, or 1 with --quick"
    )
    parser.add_argument(
        "--snapshot-minutes", type=float, metavar="N", help="how long the snapshot is held (1; aim: 10)"
    )
    parser.add_argument("--no-peer", action="store_true", help="leave the peers out")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of the table")
    parser.add_argument("--output", type=Path, default=place.ROOT / "build" / "benchmarks.jsonl", help="JSON lines")
    parser.add_argument("--folder", type=Path, help="where databases are made; on a disk")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = list(dict.fromkeys(name for alias in text.split(",") for name in ALIASES.get(alias, [alias])))
    if unknown := [name for name in names if name not in SECTIONS]:
        raise argparse.ArgumentTypeError(f"no section {unknown[0]!r}; there are {', '.join(SECTIONS)}")
    return names


def _be_alone() -> None:
    """Settings of the user do not change what is measured, and a terminated run ends its workers."""
    for name in [name for name in os.environ if name.startswith("ROTA_") and name != "ROTA_TEST_POSTGRES_BIN"]:
        del os.environ[name]
    leave: Callable[..., None] = lambda *_: sys.exit(130)  # noqa: E731
    signal.signal(signal.SIGTERM, leave)


def _run(where: Site, peers: str) -> report.Run:
    folder = where.folder if where.server is None else where.server.folder
    return report.Run(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        version=rota.__version__,
        command=shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        machine=place.machine(folder),
        database=where.describe(),
        peers=peers,
    )


def _for_people(run: report.Run, found: list[report.Result], failures: list[report.Failure]) -> str:
    machine = run.machine
    head = (
        f"Rota {run.version}, {run.date}, {machine.cores} cores ({machine.processor}), Python {machine.python}, "
        f"{run.database} on {machine.filesystem}, load {machine.load_1m:g}; peers: {run.peers}"
    )
    ends = [f"given up: {failure.section}: {failure.error}" for failure in failures]
    return "\n".join([head, "", report.table(found), *ends])


if __name__ == "__main__":
    sys.exit(main())
