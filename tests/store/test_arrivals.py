"""Arrivals: enqueues in a row are one row each until they are placed, and no caller, reader or worker notices."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rota.clock import ManualClock, SystemClock
from rota.domain.errors import ClockSkew, QueueFull, StoreError, UnknownJob
from rota.domain.job import Queue
from rota.domain.status import Status
from rota.domain.unique import Unique
from rota.ids import FIRST_ID, IdSource
from rota.ops import enqueue, job_pauses
from rota.ops.place import Origin
from rota.ops.submission import Header, Item
from rota.store import reader
from rota.store.port import Tx
from rota.store.sqlite import arrivals
from rota.store.sqlite.readonly import SqliteReadOnly
from rota.store.sqlite.store import SqliteStore
from tests.store.running import foreign, ids, line, program, start
from tests.support.tables import table
from tests.support.world import APP, NAMESPACE, World

VARYING = ("id", "created_at", "run_at")


def count(path: Path, table: str) -> int:
    with foreign(path) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


@pytest.fixture(autouse=True)
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enqueues are in a row however long the machine takes between them."""
    monkeypatch.setattr(arrivals, "LONGEST_GAP_US", 10**12)


@pytest.fixture
def other(path: Path, store: SqliteStore) -> Iterator[SqliteStore]:
    """Another process with the same file."""
    with closing(SqliteStore(f"sqlite:///{path}")) as store:
        yield store


def test_enqueues_in_a_row_are_arrivals_until_the_next_read(world: World, path: Path) -> None:
    accepted = [world.enqueue() for _ in range(5)]
    assert (count(path, "execution"), count(path, "arrival")) == (1, 4)
    assert sorted(world.executions()) == accepted
    assert (count(path, "execution"), count(path, "arrival")) == (5, 0)


def test_an_enqueue_after_a_read_is_placed_directly(world: World, path: Path) -> None:
    for _ in range(3):
        assert world.status(world.enqueue()) is Status.QUEUED
        assert count(path, "arrival") == 0


def test_another_process_reads_arrivals(world: World, other: SqliteStore) -> None:
    for _ in range(3):
        accepted = [world.enqueue() for _ in range(3)]
        for id in accepted:
            assert other.read(reader.status, NAMESPACE, id) is Status.QUEUED


def test_a_command_that_only_reads_shows_arrivals(world: World, path: Path) -> None:
    accepted = [world.enqueue() for _ in range(3)]
    with closing(SqliteReadOnly(f"sqlite:///{path}", SystemClock())) as command:
        found = [command.read(reader.status, NAMESPACE, id) for id in accepted]
        assert count(path, "arrival") == 2
        accepted.append(world.enqueue())
        found.append(command.read(reader.status, NAMESPACE, accepted[-1]))
    assert found == [Status.QUEUED] * 4


def test_another_process_claims_arrivals_in_their_order(world: World, other: SqliteStore) -> None:
    first = [world.enqueue() for _ in range(3)]
    urgent = world.enqueue(priority=9)
    there = World(other)
    worker = there.join()
    assert [claimed.id for claimed in there.claim(worker, 10)] == [urgent, *first]
    last = [world.enqueue() for _ in range(2)]
    assert [claimed.id for claimed in there.claim(worker, 10)] == last


def test_a_process_that_is_killed_loses_no_arrival(path: Path) -> None:
    with program("write", path, 10_000) as process:
        start(process)
        accepted = {line(process) for _ in range(50)}
        process.send_signal(signal.SIGKILL)
        process.wait()
        accepted |= set((process.stdout.read() if process.stdout else "").split())
    assert accepted <= ids(path)
    with closing(SqliteStore(f"sqlite:///{path}")) as store:
        for id in accepted:
            assert store.read(reader.status, NAMESPACE, id) is Status.QUEUED


def test_a_database_in_memory_has_arrivals_too() -> None:
    with closing(SqliteStore("sqlite://:memory:")) as store:
        world = World(store)
        accepted = [world.enqueue() for _ in range(4)]
        assert sorted(world.executions()) == accepted


def test_a_fork_places_arrivals_before_the_next_read(world: World) -> None:
    accepted = [world.enqueue() for _ in range(4)]
    if (child := os.fork()) == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert sorted(world.executions()) == accepted


def test_a_crash_of_the_machine_may_lose_the_mark(world: World, store: SqliteStore, path: Path) -> None:
    accepted = [world.enqueue() for _ in range(3)]
    store._turn.mark(is_set=False)
    with closing(SqliteStore(f"sqlite:///{path}")) as after:
        assert [after.read(reader.status, NAMESPACE, id) for id in accepted] == [Status.QUEUED] * 3


def test_arrivals_are_bounded(world: World, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "MOST_ARRIVALS", 10)
    for _ in range(95):
        world.enqueue()
        assert count(path, "arrival") <= 10
    assert len(ids(path)) == 95


@pytest.mark.parametrize("name", [name for name in Origin.__struct_fields__ if name not in ("key", "tags", "callback")])
def test_an_arrival_becomes_the_same_rows_as_an_execution_that_is_placed(
    world: World, store: SqliteStore, path: Path, name: str
) -> None:
    """In all columns that a caller can fill, and with each of them filled."""
    options: dict[str, Any] = {name: "{}", "priority": 7}
    for _ in range(2):
        world.enqueue(**options)
    assert count(path, "arrival") == 1
    first, second = table(store, "execution")
    _same(first, second, *VARYING)
    placed, arrived = (
        {**row, "rank": row["rank"] - execution["run_at"]}
        for row, execution in zip(table(store, "ready"), table(store, "execution"), strict=True)
    )
    _same(placed, arrived, "id")
    deltas = [(row["lane"], row["count"], row["outcome"]) for row in table(store, "stat_delta")]
    assert deltas == [(placed["lane"], 1, "created")] * 2


def _same(one: dict[str, Any], other: dict[str, Any], *varying: str) -> None:
    assert {**one, **dict.fromkeys(varying)} == {**other, **dict.fromkeys(varying)}


@pytest.mark.parametrize(
    "options",
    [
        {"tags": '["x"]'},
        {"callback": "https://example.com"},
        {"key": "k"},
        {"unique": Unique()},
        {"delay_s": 60.0},
        {"start_within_s": 60.0},
    ],
    ids=lambda options: next(iter(options)),
)
def test_an_execution_that_is_not_plain_is_placed_directly(world: World, path: Path, options: dict[str, Any]) -> None:
    world.enqueue()
    world.enqueue(**options)
    assert (count(path, "execution"), count(path, "arrival")) == (2, 0)


def test_refusals_are_those_of_any_enqueue(world: World, store: SqliteStore, path: Path) -> None:
    world.register("send", queues=[Queue(name="small", max_depth=1)])

    def refused(error: type[Exception], header: Header, item: Item) -> None:
        world.enqueue()  # After it, the next one may become an arrival.
        with pytest.raises(error):
            store.transact(enqueue.enqueue, header, [item])

    world.enqueue(queue="small")
    taken = world.item()
    store.transact(enqueue.enqueue, world.header(), [taken])
    before = len(ids(path))
    refused(UnknownJob, world.header("nothing"), world.item())
    refused(QueueFull, world.header(queue="small"), world.item())
    refused(ClockSkew, world.header(), Item(IdSource(ManualClock()).new(), "{}"))
    refused(StoreError, world.header(), taken)
    arrived = world.item()
    store.transact(enqueue.enqueue, world.header(), [arrived])
    with pytest.raises(StoreError):
        store.transact(enqueue.enqueue, world.header(), [arrived])
    assert len(ids(path)) == before + 5


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE job SET version = version + 1 WHERE name = 'send'",
        "UPDATE job SET requirements = 'gpu' WHERE name = 'send'",
        "UPDATE queue SET policy = 'fifo'",
        "UPDATE queue SET max_depth = 100",
        "INSERT INTO dependency (namespace, app, job, upstream_app, upstream, outcome) "
        "SELECT namespace, app, name, app, 'receive', 'success' FROM job WHERE name = 'send'",
    ],
    ids=["version", "requirements", "policy", "depth", "dependency"],
)
def test_a_cached_route_that_is_no_longer_right_is_not_used(world: World, path: Path, change: str) -> None:
    for _ in range(3):
        world.enqueue()
    assert count(path, "arrival") == 2
    with foreign(path) as connection:
        assert connection.execute(change).rowcount == 1
    world.enqueue()
    assert count(path, "arrival") == 0


def test_enqueues_with_a_longer_gap_are_placed_directly(
    world: World, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "LONGEST_GAP_US", -1)
    for _ in range(3):
        world.enqueue()
    assert count(path, "arrival") == 0


def test_an_operation_that_fails_keeps_the_arrivals(world: World, store: SqliteStore) -> None:
    accepted = [world.enqueue() for _ in range(3)]

    def fail(tx: Tx) -> None:
        raise UnknownJob("on purpose")

    for _ in range(2):
        with pytest.raises(UnknownJob):
            store.transact(fail)
    assert sorted(world.executions()) == accepted


def test_a_full_disk_does_not_prevent_reading(world: World, store: SqliteStore, path: Path) -> None:
    accepted = [world.enqueue(), world.enqueue(arguments={"text": "x" * 100_000})]
    store._connection.execute("PRAGMA max_page_count = 1")
    for _ in range(2):
        assert [world.status(id) for id in accepted] == [Status.QUEUED] * 2
        assert count(path, "arrival") == 1
    store._connection.execute("PRAGMA max_page_count = 1000000")
    assert [world.status(id) for id in accepted] == [Status.QUEUED] * 2
    assert count(path, "arrival") == 0


def test_a_read_does_not_wait_for_a_program_that_holds_the_lock(world: World, other: SqliteStore, path: Path) -> None:
    accepted = [world.enqueue(headers='{"a":"b"}', parent=FIRST_ID) for _ in range(4)]
    names = ("execution", "ready", "state")
    with foreign(path) as connection:
        connection.execute("BEGIN IMMEDIATE")
        seen = [other.read(_sorted_rows, name) for name in names]
        assert [other.read(reader.status, NAMESPACE, id) for id in accepted] == [Status.QUEUED] * 4
        assert count(path, "arrival") == 3
        connection.execute("ROLLBACK")
    other.transact(lambda tx: None)
    assert count(path, "arrival") == 0
    assert seen == [other.read(_sorted_rows, name) for name in names]


def _sorted_rows(view: Any, name: str) -> list[Any]:
    return sorted(view._connection.execute(f"SELECT * FROM {name}"), key=str)


def test_a_deleted_lock_file_has_no_mark_that_others_see(world: World, path: Path) -> None:
    Path(f"{path}-turn").unlink()
    for _ in range(3):
        world.enqueue()
        assert count(path, "arrival") == 0


def test_a_pause_and_a_resume_keep_the_places_of_arrivals(world: World) -> None:
    accepted = [world.enqueue() for _ in range(4)]
    world.store.transact(job_pauses.pause, NAMESPACE, APP, "send", "ann", "")
    accepted += [world.enqueue() for _ in range(4)]
    worker = world.join()
    assert world.claim(worker, 10) == []
    world.store.transact(job_pauses.resume, NAMESPACE, APP, "send", "ann")
    assert [claimed.id for claimed in world.claim(worker, 10)] == accepted


def test_the_clock_of_an_arrival_is_that_of_its_enqueue(world: World, store: SqliteStore) -> None:
    clock = SystemClock()
    times = []
    for _ in range(3):
        before = clock.now()
        id = world.enqueue()
        times.append((id, before, clock.now()))
    rows = {row["id"]: row for row in table(store, "execution")}
    for id, before, after in times:
        assert before <= rows[id]["created_at"] == rows[id]["run_at"] <= after
