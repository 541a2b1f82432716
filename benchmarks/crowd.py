"""Very many sleeping executions in one worker process, and very many workers with heartbeats on one database."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from benchmarks.database import START_S, Database
from benchmarks.place import ROOT
from benchmarks.processes import Tree, started
from benchmarks.sections import SETTLE_S, Samples, cores, statements_per_s
from benchmarks.site import Site
from benchmarks.sizes import Size
from benchmarks.steady import Stalled, percentile, until

LOOK_S = 0.1
HERDS = 4
FEW = 8


def crowd(site: Site, size: Size) -> Samples:
    """One async worker with as many slots as there are executions, each of which only sleeps."""
    with site.fresh() as database, database.worker(processes=1, concurrency=size.crowd) as tree:
        time.sleep(min(SETTLE_S, size.crowd_s))
        empty_mb = sum(tree.rss_mb())
        # They must all sleep at the same time, even if starting them takes as long as the measurement.
        calls = [(number, 2 * size.crowd_s + size.crowd / 5_000) for number in range(size.crowd)]
        began = time.perf_counter()
        database.jobs.nap.enqueue_many(calls)
        until(lambda: database.count("running") == size.crowd, "all of them running", size.limit_s)
        yield "crowd_start", size.crowd / (time.perf_counter() - began)
        yield from _asleep(database, tree, size)
        full_mb = sum(tree.rss_mb())
        yield "crowd_rss", full_mb
        yield "crowd_each", (full_mb - empty_mb) * 1e3 / size.crowd
        until(lambda: database.count("finished") == size.crowd, "all of them to end", size.limit_s)
        late = database.probe.delays(size.crowd)
        yield "crowd_late_p50", percentile(late, 50) * 1e3
        yield "crowd_late_p99", percentile(late, 99) * 1e3


def _asleep(database: Database, tree: Tree, size: Size) -> Samples:
    """The cost of holding them: heartbeats, and the comparison of held executions with the running rows."""
    own, server = cores(database, [tree], size.crowd_s / 2)
    yield "crowd_cpu", own * 100
    if server is not None:
        yield "crowd_server_cpu", server * 100
    ages = []
    stop_at = time.perf_counter() + size.crowd_s / 2
    while time.perf_counter() < stop_at:
        ages.append(database.oldest_beat_s())
        time.sleep(LOOK_S)
    yield "crowd_beat", max(ages) * 1e3
    if database.count("running") < size.crowd:
        raise Stalled("some woke up during the measurement")


def fleet(site: Site, size: Size) -> Samples:
    """Many registered workers in few processes: first only their heartbeats, then also their polling."""
    for name in ("beats", "idle"):
        with site.fresh() as database, _herds(database, size, name, trace=False) as trees:
            own, server = cores(database, trees, size.fleet_s)
            yield f"fleet_{name}_cpu", own * 100
            if server is not None:
                yield f"fleet_{name}_server_cpu", server * 100
            yield f"fleet_{name}_oldest", database.oldest_beat_s() * 1e3
        # In a separate run, because writing every statement to a log costs more than the statements.
        with site.fresh() as database, _herds(database, size, name, trace=True):
            yield f"fleet_{name}_statements", statements_per_s(database, size.fleet_s / 2)


@contextlib.contextmanager
def _herds(database: Database, size: Size, what: str, *, trace: bool) -> Iterator[list[Tree]]:
    """Starts processes that together register `size.fleet` workers, and waits until all are registered."""
    environment = {"ROTA_URL": database.url, "PYTHONPATH": str(ROOT)}
    if trace:
        environment |= database.traced() | {"BENCHMARKS_PROBE": str(database.folder / "probe")}
    herds = min(HERDS, max(1, size.fleet // FEW))
    each = size.fleet // herds
    command = [sys.executable, "-m", "benchmarks.herd", what, str(each)]
    with contextlib.ExitStack() as stack:
        log = database.folder / "herd.log"
        trees = [stack.enter_context(started(command, environment, log)) for _ in range(herds)]
        joined = "SELECT count(*) FROM worker WHERE stopped_at IS NULL"
        until(lambda: database.one(joined) == herds * each or not _alive(trees), "the fleet", START_S + size.fleet / 50)
        for tree in trees:
            if not tree.is_running:
                raise Stalled(f"a process of the fleet {tree.last_words()}")
        time.sleep(min(SETTLE_S, size.fleet_s))
        yield trees


def _alive(trees: list[Tree]) -> bool:
    return all(tree.is_running for tree in trees)
