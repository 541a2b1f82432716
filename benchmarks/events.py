"""How fast events are emitted and delivered. Without a worker: upkeep runs in this process, and is counted."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.sections import Samples
from benchmarks.site import Site
from benchmarks.sizes import Size
from rota import App
from rota.clock import SystemClock
from rota.domain.served import Served
from rota.domain.source import Folder
from rota.engine.folder_watch import FolderWatch, listed
from rota.ids import IdSource
from rota.ops import claim, fleet
from rota.ops.events import emit
from rota.ops.events.chores import work_on_events
from rota.ops.retention import KEPT_KIND
from rota.sdk.app import registry_of
from rota.store.port import Store
from rota.workflow import wait_for_event

CALLERS = 32
LEASE_S = 3600.0
BATCH = 500
OPENED = 100


def events(site: Site, size: Size) -> Samples:
    for name, subscribers in (("emit_none", 0), ("emit_one", 1)):
        with _app(site, subscribers) as (app, _):
            yield name, _emits(app, size.single_s)
    with _app(site, size.subscribers) as (app, store):
        yield "emit_many", _many(app, store) * 1e3
    with _app(site, 0) as (app, store):
        yield "wake", _woken(app, store, size)
    with _app(site, 0) as (_, store), site.new_folder("drop-") as folder:
        yield from _folder(store, folder, size)


def _emits(app: App, seconds: float) -> float:
    """Events per second, one by one, from many threads."""
    counts = [0] * CALLERS
    gate = threading.Barrier(CALLERS + 1)
    stop_at = 0.0

    def call(index: int) -> None:
        gate.wait()
        while time.perf_counter() < stop_at:
            app.emit("paid", {"order": index})
            counts[index] += 1

    callers = [threading.Thread(target=call, args=(index,)) for index in range(CALLERS)]
    for caller in callers:
        caller.start()
    began = time.perf_counter()
    stop_at = began + seconds
    gate.wait()
    for caller in callers:
        caller.join()
    return sum(counts) / (time.perf_counter() - began)


def _many(app: App, store: Store) -> float:
    """Seconds until all subscribers of one event have an execution."""
    began = time.perf_counter()
    app.emit("paid", {"order": 1})
    _upkeep(store)
    return time.perf_counter() - began


def _woken(app: App, store: Store, size: Size) -> float:
    """Waits per second that one event ends, each in a run of its own, which ends with it."""
    waiting = app.workflows["waiting"]
    for start in range(0, size.waits, BATCH):
        waiting.start_many([()] * min(BATCH, size.waits - start))
    served = Served.one(registry_of(app).settings.namespace, app.name, None, ["waiting"])
    worker = _join(app, store)
    while store.transact(claim.claim, worker, served, OPENED).has_more:
        pass
    _upkeep(store)
    began = time.perf_counter()
    event = app.emit("woken", 1)
    _upkeep(store)
    passed = time.perf_counter() - began
    assert event.info().deliveries == size.waits
    return size.waits / passed


def _folder(store: Store, folder: Path, size: Size) -> Samples:
    """The files of a folder: to list them, and to emit an event for each."""
    for number in range(size.files):
        (folder / f"{number}.csv").write_bytes(b"")
    source = Folder(str(folder), "dropped", settle_s=0)
    watch = FolderWatch(source, IdSource(SystemClock()))
    began = time.perf_counter()
    found = listed(source)
    yield "folder_list", (time.perf_counter() - began) * 1e3
    began = time.perf_counter()
    settled = watch.settled(found, 0)
    for start in range(0, len(settled), BATCH):
        emissions = [watch.emission(one) for one in settled[start : start + BATCH]]
        store.transact(emit.emit, emit.EmitHeader("default", "folder", key_kind=KEPT_KIND), emissions)
    yield "folder_emit", size.files / (time.perf_counter() - began)


def _upkeep(store: Store) -> None:
    while store.transact(work_on_events):
        pass


@contextlib.contextmanager
def _app(site: Site, subscribers: int) -> Iterator[tuple[App, Store]]:
    """An app whose deploy is in force, with this many jobs that subscribe."""
    with site.fresh() as database:
        app = App("events", url=database.url)
        for number in range(subscribers):
            app.job(name=f"job{number}", on="paid")(_takes)

        @app.workflow
        def waiting() -> Any:
            return wait_for_event("woken", timeout="1h").payload

        try:
            store = registry_of(app).connection.store()
            _join(app, store)
            yield app, store
        finally:
            app.close()


def _takes(order: Any) -> None: ...


def _join(app: App, store: Store) -> int:
    newcomer = fleet.Newcomer(
        namespace=registry_of(app).settings.namespace,
        app=app.name,
        name="benchmark",
        host="",
        pid=1,
        version="",
        queues=None,
        jobs=["waiting"],
        concurrency=OPENED,
        deploy=app.declare(),
    )
    return store.transact(fleet.join, newcomer, LEASE_S)
