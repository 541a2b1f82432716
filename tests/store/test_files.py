"""Files that are damaged, foreign, full, missing or may not be written: one clear error, and nothing else happens."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from rota.domain.errors import DefinitionError, StoreError, StoreMismatch, StoreUnavailable
from rota.ops import enqueue, submission
from rota.store.opening import open_store
from rota.store.port import Tx
from rota.store.sqlite.file import MEMORY, path_of
from rota.store.sqlite.store import SqliteStore
from tests.store.running import foreign, ids, run
from tests.support.world import World

PAGE = 4096


def test_a_full_disk_is_a_clear_error_and_writes_succeed_when_there_is_space(
    world: World, store: SqliteStore, path: Path
) -> None:
    before = world.enqueue()
    store.transact(limit, store, 1)
    with pytest.raises(StoreUnavailable, match=r"no space left to write .*; nothing was accepted"):
        world.enqueue_many(10_000)
    accepted = set(world.executions(limit=1000))
    assert accepted == {before}
    store.transact(limit, store, 1_000_000)
    after = world.enqueue_many(1_000)
    assert ids(path) == accepted | set(after)


def test_operations_that_share_a_commit_on_a_full_disk_get_the_right_answers(
    world: World, store: SqliteStore, path: Path
) -> None:
    store.transact(limit, store, 1)
    futures = [
        (item.id, store.submit(accept, world, item))
        for item in (world.item({"text": "x" * size}) for size in [10, 200_000] * 20)
    ]
    told = {id for id, future in futures if future.exception(30) is None}
    assert all(
        isinstance(error, StoreUnavailable) for _, future in futures if (error := future.exception(30)) is not None
    )
    assert len(told) < len(futures)
    assert ids(path) == told


def limit(tx: Tx, store: SqliteStore, pages: int) -> None:
    """Simulates a disk with little space; SQLite uses the present size if that is more."""
    store._connection.execute(f"PRAGMA max_page_count = {pages}")


def accept(tx: Tx, world: World, item: submission.Item) -> None:
    """An enqueue that does not run together with others."""
    enqueue.enqueue(tx, world.header(), [item])


def test_a_file_that_may_not_grow_keeps_accepted_executions_and_works_afterwards(path: Path) -> None:
    lines = [line.split(maxsplit=2) for line in run("fill", path, 2_000_000)]
    refused = [line for line in lines if line[0] == "refused"]
    assert [line[1] for line in refused] == ["StoreUnavailable"]
    accepted = {line[1] for line in lines if line[0] == "accepted"}
    assert ids(path) == accepted
    assert [line[0] for line in lines[-5:]] == ["accepted"] * 5


@pytest.mark.parametrize("content", [b"not a database, but long enough to look like one " * 100, b"\x00" * 5000])
def test_a_file_that_is_no_database_is_refused_and_not_changed(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreMismatch, match="is not a SQLite database"):
        SqliteStore(f"sqlite:///{path}")
    assert path.read_bytes() == content


def test_a_damaged_file_is_reported_as_damaged(path: Path) -> None:
    store = SqliteStore(f"sqlite:///{path}")
    World(store).enqueue_many(500)
    store.close()
    data = bytearray(path.read_bytes())
    data[PAGE:] = os.urandom(len(data) - PAGE)
    path.write_bytes(data)
    with pytest.raises(StoreMismatch, match="is damaged: restore it from a backup"):
        SqliteStore(f"sqlite:///{path}")


def test_damage_that_is_found_later_is_reported_to_the_caller_that_finds_it(path: Path) -> None:
    store = SqliteStore(f"sqlite:///{path}")
    World(store).enqueue_many(2000)
    store.close()
    with foreign(path) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'execution'").fetchone()
    data = bytearray(path.read_bytes())
    data[(root - 1) * PAGE : root * PAGE] = os.urandom(PAGE)
    path.write_bytes(data)
    store = SqliteStore(f"sqlite:///{path}")
    try:
        world = World(store)
        with pytest.raises(StoreMismatch, match="is damaged"):
            world.executions()
        with pytest.raises(StoreMismatch, match="is damaged"):
            world.enqueue()
    finally:
        store.close()


def test_the_error_names_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match=r"the folder .*/nowhere does not exist: create it"):
        SqliteStore(f"sqlite:///{tmp_path}/nowhere/rota.db")
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_is_refused_as_a_database(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be read or written"):
        SqliteStore(f"sqlite:///{tmp_path}")


@pytest.mark.parametrize("which", ["rota.db", "rota.db-shm", "rota.db-turn"])
def test_a_read_only_file_is_refused(which: str) -> None:
    """So is a file with read-only side files: SQLite creates them with the mode that the file had at that time."""
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        path = folder / "rota.db"
        SqliteStore(f"sqlite:///{path}").close()
        (line,) = run("open_without_rights", path, *([] if which == path.name else [folder / which]))
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)
    assert line.startswith("StoreUnavailable ")
    assert f"make {folder / which} readable and writable" in line


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///rota.db", "rota.db"),
        ("sqlite:////var/lib/rota.db", "/var/lib/rota.db"),
        ("sqlite:///a b/ä.db", "a b/ä.db"),
    ],
)
def test_a_url_names_a_file(url: str, path: str) -> None:
    assert path_of(url) == str(Path.cwd() / path)


def test_a_url_may_name_memory() -> None:
    assert path_of("sqlite://:memory:") == path_of("sqlite:///:memory:") == MEMORY


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///", "sqlite://host/x", "sqlite:///a\x00b", "sqlite:x", "file:x", ""]
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(DefinitionError):
        open_store(url)


def test_a_store_in_memory_works_with_its_thread_too() -> None:
    store = SqliteStore("sqlite://:memory:")
    try:
        world = World(store)
        id = world.enqueue()
        assert world.executions() == [id]
        with pytest.raises(StoreError):
            store.transact(lambda tx: tx.run("add_queues", queues=[("mail",)], namespace=None))
    finally:
        store.close()
