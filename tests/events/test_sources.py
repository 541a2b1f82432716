"""Folders and outbox tables that become events."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psycopg
import pytest

from rota.clock import ManualClock
from rota.domain import source as sources
from rota.domain.errors import DefinitionError
from rota.domain.source import Folder, Outbox, Source
from rota.engine.async_store import AsyncStore
from rota.engine.folder_watch import FolderWatch, Found, listed
from rota.engine.outbox_refusals import MOST_LOGGED, MOST_REMEMBERED, RETRY_S, OutboxRefusals
from rota.engine.sources import BATCH, Sources
from rota.ids import IdSource
from rota.ops import deploy
from rota.ops.events import outbox
from rota.ops.events.outbox import NONE_SKIPPED, Skipped
from rota.store.port import Store
from rota.store.postgres.store import PostgresStore
from rota.store.sqlite.store import SqliteStore
from tests.events.scene import Scene, subscriber
from tests.support.databases import fresh_database
from tests.support.tables import table
from tests.support.waiting import eventually
from tests.support.world import APP, NAMESPACE, World

MOST_BYTES = 1024


# --- Folders --------------------------------------------------------------------------------------


def write(path: Path, text: str, changed_s: int = 1000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (changed_s, changed_s))


def names(watch: FolderWatch, now: float) -> list[str]:
    """The files for which there are events now."""
    settled = watch.settled(listed(watch.source), now)
    watch.note_emitted(settled)
    return [one.name for one in settled]


def a_watch(folder: Path, **about: object) -> FolderWatch:
    source = sources.folder(str(folder), "file.dropped", "*", 5, 1, is_recursive=False)
    for name, value in about.items():
        source = Folder(**{**{field: getattr(source, field) for field in source.__struct_fields__}, name: value})
    return FolderWatch(source, IdSource(ManualClock()))


def test_a_file_is_an_event_once_it_has_settled(tmp_path: Path) -> None:
    watch = a_watch(tmp_path)
    write(tmp_path / "a.csv", "1")
    assert names(watch, 0) == []
    assert names(watch, 4.9) == []
    write(tmp_path / "a.csv", "12")  # It grows: the time counts anew.
    assert names(watch, 5) == []
    assert names(watch, 9.9) == []
    assert names(watch, 10) == ["a.csv"]
    assert names(watch, 100) == []
    write(tmp_path / "a.csv", "12", changed_s=2000)  # The same size, written again.
    assert names(watch, 101) == []
    assert names(watch, 106) == ["a.csv"]


def test_a_file_that_was_removed_and_comes_back(tmp_path: Path) -> None:
    watch = a_watch(tmp_path)
    write(tmp_path / "a", "1")
    names(watch, 0)
    assert names(watch, 5) == ["a"]
    (tmp_path / "a").unlink()
    assert names(watch, 6) == []
    write(tmp_path / "a", "1", changed_s=3000)
    assert names(watch, 7) == []
    assert names(watch, 12) == ["a"]


def test_which_files_count(tmp_path: Path) -> None:
    for name in ("a.csv", "b.txt", ".hidden.csv", "sub/c.csv", ".git/d.csv"):
        write(tmp_path / name, "1")
    (tmp_path / os.fsdecode(b"\xff.csv")).write_text("1")
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    (tmp_path / "dead.csv").symlink_to(tmp_path / "nothing")
    flat = Folder(str(tmp_path), "x", "*.csv")
    assert [one.name for one in listed(flat)] == ["a.csv", "link.csv"]
    deep = Folder(str(tmp_path), "x", "*.csv", is_recursive=True)
    assert [one.name for one in listed(deep)] == ["a.csv", "link.csv", "sub/c.csv"]


def test_what_cannot_be_read_does_not_hold_back_the_other_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "b.csv", "1")
    write(tmp_path / "closed" / "c.csv", "1")
    (tmp_path / "a.csv").symlink_to("a.csv")  # It leads to itself.
    scandir = os.scandir

    def refuse(path: str) -> object:
        if Path(path).name == "closed":
            raise PermissionError(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)  # Permissions do not hold for root, as whom the tests may run.
    assert [one.name for one in listed(a_watch(tmp_path, is_recursive=True).source)] == ["b.csv"]
    with pytest.raises(PermissionError):
        listed(a_watch(tmp_path / "closed").source)


@pytest.mark.parametrize(
    ("changed_s", "shown"), [(10**12, "9999-12-31T23:59:59Z"), (-(10**12), "0001-01-01T00:00:00Z")]
)
def test_a_time_of_change_that_no_datetime_can_hold(tmp_path: Path, changed_s: int, shown: str) -> None:
    emission = a_watch(tmp_path).emission(Found("a.csv", (1, changed_s * 10**9)))
    assert shown in emission.payload


def test_a_file_in_the_root_folder() -> None:
    event = a_watch(Path("/")).emission(Found("a.csv", (1, 0)))
    assert msgspec.json.decode(event.payload)["path"] == "/a.csv"


def test_two_watchers_make_the_same_event(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "123")
    one, other = a_watch(tmp_path), a_watch(tmp_path)
    (found,) = listed(one.source)
    first, second = one.emission(found), other.emission(found)
    assert (first.key, first.payload, first.digest) == (second.key, second.payload, second.digest)
    write(tmp_path / "a.csv", "124", changed_s=1001)
    assert one.emission(listed(one.source)[0]).key != first.key


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"path": "drop"}, "absolute path"),
        ({"name": "a b"}, "an event's name"),
        ({"pattern": "a/*.csv"}, "names of files"),
        ({"settle": -1}, "settle"),
    ],
)
def test_an_invalid_folder_is_refused(given: dict[str, object], words: str) -> None:
    about: dict[str, object] = {"path": "/drop", "name": "x", "pattern": "*", "settle": 1, "every": 1, **given}
    with pytest.raises(DefinitionError, match=words):
        sources.folder(**about, is_recursive=False)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "a.b.c", "a b", 'x"; DROP TABLE y; --', "ä"])
def test_an_invalid_table_is_refused(name: str) -> None:
    with pytest.raises(DefinitionError, match="outbox"):
        sources.outbox(name, 1)


# --- Outbox tables --------------------------------------------------------------------------------


class Office:
    """A database with an outbox table of the user."""

    def __init__(self, store: Store, connection: psycopg.Connection | sqlite3.Connection, name: str) -> None:
        self.scene = Scene(World(store, store.clock))  # type: ignore[attr-defined]
        self.connection, self.table = connection, name

    def insert(self, name: str, payload: str | None = None, subject: str | None = None, key: str | None = None) -> None:
        mark = "?" if isinstance(self.connection, sqlite3.Connection) else "%s"
        values = ", ".join([mark] * 4)
        text = f"INSERT INTO {self.table} (name, payload, subject, key) VALUES ({values})"
        self.connection.execute(text, (name, payload, subject, key))
        self.connection.commit()

    def emit_rows(self, most: int = 100, skipped: Skipped = NONE_SKIPPED) -> outbox.EmittedRows:
        store, ids = self.scene.store, self.scene.world.ids
        return store.transact(outbox.emit_rows, NAMESPACE, self.table, ids, most, MOST_BYTES, skipped)

    def left(self) -> list[str]:
        return [row[0] for row in self.connection.execute(f"SELECT name FROM {self.table} ORDER BY id")]


@pytest.fixture(params=["sqlite", "postgres"])
def office(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Office]:
    clock = ManualClock()
    store: Store
    connection: sqlite3.Connection | psycopg.Connection[tuple[object, ...]]
    if request.param == "sqlite":
        path = tmp_path / "rota.db"
        store = SqliteStore(f"sqlite:///{path}", clock, inline=True)
        connection = sqlite3.connect(path)
        connection.execute(
            "CREATE TABLE outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, payload TEXT, "
            "subject TEXT, key TEXT)"
        )
        name = "outbox"
    else:
        url = fresh_database()
        store = PostgresStore(url, clock, inline=True)
        connection = psycopg.connect(url)
        connection.execute("CREATE SCHEMA shop")
        connection.execute(
            "CREATE TABLE shop.outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, "
            "payload json, subject text, key text)"
        )
        name = "shop.outbox"
    connection.commit()
    store.clock = clock
    yield Office(store, connection, name)
    connection.close()
    store.close()


def test_rows_become_events_in_the_order_of_their_ids(office: Office) -> None:
    scene = office.scene
    scene.deploy(subscriber("bill", "paid"))
    for number in range(5):
        office.insert("paid", f'{{"n": {number}}}', f"A-{number}", f"k{number}")
    assert office.emit_rows(most=3).emitted == 3
    assert len(office.left()) == 2
    assert office.emit_rows(most=3).emitted == 2
    assert office.emit_rows() == outbox.EmittedRows(0, {})
    assert scene.arguments("bill") == [{"x": {"n": number}} for number in range(5)]
    assert {row["subject"] for row in table(scene.store, "event")} == {f"A-{number}" for number in range(5)}


def test_a_row_that_is_no_event_stays_and_does_not_block_the_others(office: Office) -> None:
    office.insert("paid", "1", key="k")
    office.insert("not a name")
    office.insert("paid", "2", key="k")
    office.insert("large", f'"{"x" * MOST_BYTES}"')
    office.insert("paid", "3")
    found = office.emit_rows()
    assert (found.emitted, sorted(found.refused)) == (2, [2, 3, 4])
    assert "name" in found.refused[2]
    assert "another payload" in found.refused[3]
    assert office.left() == ["not a name", "paid", "large"]
    assert office.emit_rows(skipped=Skipped(ids=tuple(found.refused))) == outbox.EmittedRows(0, {})
    assert sorted(office.emit_rows(skipped=Skipped(until=2)).refused) == [3, 4]


@pytest.mark.parametrize("office", ["sqlite"], indirect=True)
def test_a_row_with_bytes_does_not_block_the_others(office: Office) -> None:
    office.insert("paid", b'{"n": 1}')  # type: ignore[arg-type]
    for column in ("name", "payload", "subject", "key"):
        office.insert("paid", "2")
        for bad in ("x'ff'", "CAST(x'ff' AS TEXT)"):
            office.insert("paid", "3")
            office.connection.execute(f"UPDATE outbox SET {column} = {bad} WHERE id = (SELECT max(id) FROM outbox)")
    office.connection.commit()
    found = office.emit_rows()
    assert (found.emitted, len(found.refused)) == (5, 8)
    assert sum("is not UTF-8" in why for why in found.refused.values()) == 6
    assert [row["payload"] for row in table(office.scene.store, "event")] == ['{"n":1}', "2", "2", "2", "2"]


def test_an_outbox_that_is_rolled_back_keeps_its_rows(office: Office) -> None:
    office.insert("paid", "1")

    def fail(tx: object) -> None:
        outbox.emit_rows(tx, NAMESPACE, office.table, office.scene.world.ids, 10, MOST_BYTES)  # type: ignore[arg-type]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        office.scene.store.transact(fail)
    assert office.left() == ["paid"]
    assert table(office.scene.store, "event") == []


# --- As upkeep of a worker ------------------------------------------------------------------------


async def came_true(condition: Callable[[], bool]) -> None:
    await asyncio.to_thread(eventually, condition)


class _Watching:
    """Runs the sources of a deploy until so many events are there, and `also` is true."""

    def __init__(self, office: Office) -> None:
        self.office, self.store = office, AsyncStore(office.scene.store, office.scene.world.clock)

    async def until(self, count: int, nodes: int = 2, also: Callable[[], bool] = lambda: True) -> None:
        loops = [Sources(self.store, self.office.scene.world.clock, NAMESPACE, APP) for _ in range(nodes)]
        tasks = [asyncio.create_task(one.loop.run()) for one in loops]
        try:
            await came_true(lambda: len(table(self.office.scene.store, "event")) >= count and also())
        finally:
            for one, task in zip(loops, tasks, strict=True):
                one.close()
                task.cancel()


def declare(office: Office, *found: Source) -> None:
    scene = office.scene
    number = scene.store.transact(deploy.declare, NAMESPACE, APP, [subscriber("load", "file.dropped")], [], {}, found)
    scene.world.join(deploy=number)


def test_workers_watch_what_the_deploy_in_force_declares(office: Office, tmp_path: Path) -> None:
    """Two nodes watch a folder and a table: one event for each file and row."""
    drop = tmp_path / "drop"
    for number in range(7):
        write(drop / f"{number}.csv", "1")
    for _ in range(3):
        office.insert("paid", "1")
    declare(office, Folder(str(drop), "file.dropped", settle_s=0, every_s=0.01), Outbox(office.table, every_s=0.01))
    asyncio.run(_Watching(office).until(10))
    asyncio.run(_Watching(office).until(10))  # Other processes, which have seen nothing yet.
    assert len(table(office.scene.store, "event")) == 10
    paths = sorted(one["x"]["path"] for one in office.scene.arguments("load"))
    assert paths == [f"{drop}/{number}.csv" for number in range(7)]


def test_many_refused_rows_hold_back_no_later_row(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    """More than are remembered, and more than one read returns."""
    bad = MOST_REMEMBERED + 2 * BATCH
    for _ in range(bad):
        office.connection.execute(f"INSERT INTO {office.table} (name) VALUES ('not a name')")
    office.insert("paid", "1")
    declare(office, Outbox(office.table, every_s=0.01))

    async def scene() -> None:
        watching = asyncio.create_task(_Watching(office).until(2, nodes=1))
        await came_true(lambda: len(table(office.scene.store, "event")) == 1)
        office.insert("paid", "2")
        await watching

    asyncio.run(scene())
    assert len(office.left()) == bad
    refusals = [one for one in caplog.messages if "cannot become" in one]
    assert len(refusals) == MOST_LOGGED + 1
    assert refusals[-1] == f"more rows of outbox {office.table} cannot become events, and stay there"


def test_refused_rows_are_read_again_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    refusals = OutboxRefusals("outbox", clock)
    refusals.add(dict.fromkeys(range(MOST_REMEMBERED), "bad"))
    assert refusals.skipped() == Skipped(ids=tuple(range(MOST_REMEMBERED)))
    refusals.add({MOST_REMEMBERED: "bad"})
    middle = MOST_REMEMBERED // 2
    assert refusals.skipped() == Skipped(until=middle, ids=tuple(range(middle + 1, MOST_REMEMBERED + 1)))
    assert len(caplog.messages) == MOST_LOGGED + 1
    clock.advance(RETRY_S)
    assert refusals.skipped() == Skipped()
    refusals.add({1: "bad"})
    assert len(caplog.messages) == MOST_LOGGED + 2


def test_a_source_that_cannot_be_read_is_logged_once(
    office: Office, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    drop = tmp_path / "drop"
    declare(office, Folder(str(drop), "file.dropped", settle_s=0, every_s=0.01), Outbox("missing", every_s=0.01))

    async def scene() -> None:
        ended = _Watching(office).until(1, nodes=1, also=lambda: "drop/* can be read again" in caplog.text)
        watching = asyncio.create_task(ended)
        await came_true(lambda: "drop/*" in caplog.text and "missing" in caplog.text)
        write(drop / "a", "1")
        await watching

    asyncio.run(scene())
    assert caplog.text.count("drop/* cannot be read") == 1
    assert caplog.text.count("missing cannot be read") == 1
