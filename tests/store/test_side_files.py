"""The files of a database are for its owner only; side files that are links or belong to other users are refused.

The tests run as root, who may make files of other users.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rota.cli import doctor_checks_sqlite
from rota.cli.database import Database
from rota.cli.doctor_checks import Finding, Verdict
from rota.domain.errors import StoreUnavailable
from rota.engine.async_store import StoreCalls
from rota.ops import enqueue
from rota.store.hints import Ready
from rota.store.sqlite import health
from rota.store.sqlite.store import SqliteStore
from tests.support.waiting import PATIENCE_S
from tests.support.world import World

STRANGER = 65534
SUFFIXES = ["-turn", "-wal", "-shm", "-journal", "-hints"]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")


def opened(path: Path, busy_s: float = 30.0) -> SqliteStore:
    return SqliteStore(f"sqlite:///{path}", busy_s=busy_s)


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.lstat().st_mode))


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.mark.parametrize("mask", [0, 0o022, 0o777], ids=oct)
def test_all_files_are_for_their_owner_only_whatever_the_umask(path: Path, mask: int) -> None:
    with umask(mask):
        store = opened(path)
        listener = store.bus.listen(Ready)
        World(store).enqueue()
        modes = {file.name: mode(file) for file in path.parent.iterdir()}
        listener.close()
        store.close()
    private = dict.fromkeys(["rota.db", "rota.db-wal", "rota.db-shm", "rota.db-turn"], "0o600")
    assert modes == private | {"rota.db-hints": "0o700"}


def test_existing_files_keep_their_modes_so_that_a_group_can_share_them(path: Path) -> None:
    opened(path).close()
    path.chmod(0o660)
    beside(path, "-turn").chmod(0o660)
    store = opened(path)
    World(store).enqueue()
    names = ["", "-turn", "-wal", "-shm"]
    assert [mode(beside(path, suffix)) for suffix in names] == ["0o660"] * 4
    store.close()


def test_the_doctor_warns_of_files_that_every_user_can_open(path: Path) -> None:
    opened(path).close()
    found = {one.check: one for one in examined(path)}
    assert found["files"].verdict is Verdict.OK
    path.chmod(0o644)
    beside(path, "-turn").chmod(0o604)
    found = {one.check: one for one in examined(path)}
    assert found["files"].verdict is Verdict.WARN
    assert found["files"].found == "every user of this machine can open rota.db, rota.db-turn"
    assert found["files"].advice == f"chmod o= {path} {path}-turn"


@pytest.mark.parametrize("exists", [True, False], ids=["existing", "new"])
def test_a_database_may_be_a_link_and_its_files_are_beside_the_real_one(tmp_path: Path, exists: bool) -> None:
    (disk := tmp_path / "disk").mkdir()
    (place := tmp_path / "place").mkdir()
    (link := place / "rota.db").symlink_to(disk / "data.db")
    if exists:
        opened(disk / "data.db").close()
    store = opened(link)
    listener = store.bus.listen(Ready)
    World(store).enqueue()
    names = {file.name for file in disk.iterdir()}
    listener.close()
    store.close()
    assert names == {"data.db", "data.db-wal", "data.db-shm", "data.db-turn", "data.db-hints"}
    assert [file.name for file in place.iterdir()] == ["rota.db"]
    assert mode(disk / "data.db") == "0o600"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_link_beside_the_database_is_refused_and_not_followed(path: Path, tmp_path: Path, suffix: str) -> None:
    opened(path).close()
    (target := tmp_path / "target").mkdir()
    (target / "file").write_text("precious")
    beside(path, suffix).unlink(missing_ok=True)
    beside(path, suffix).symlink_to(target if suffix == "-hints" else target / "file")
    with pytest.raises(StoreUnavailable, match=rf"rota\.db{suffix} is a link, which Rota does not use: .* remove it"):
        opened(path)
    assert (target / "file").read_text() == "precious"
    assert os.listdir(target) == ["file"]


@as_root
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_side_file_of_another_user_is_refused(path: Path, suffix: str) -> None:
    opened(path).close()
    file = beside(path, suffix)
    file.mkdir(exist_ok=True) if suffix == "-hints" else file.touch()
    os.chown(file, STRANGER, STRANGER)
    with pytest.raises(StoreUnavailable, match=rf"rota\.db{suffix} belongs to user {STRANGER}, who is neither"):
        opened(path)
    path.chmod(0o660)
    opened(path).close()


@pytest.mark.parametrize("suffix", ["-turn", "-hints"])
def test_a_pipe_in_the_place_of_a_side_file_is_refused_without_waiting(path: Path, suffix: str) -> None:
    opened(path).close()
    beside(path, suffix).unlink(missing_ok=True)
    os.mkfifo(beside(path, suffix))
    with pytest.raises(StoreUnavailable, match=rf"rota\.db{suffix} is no (regular file|folder)"):
        opened(path)


@as_root
def test_side_files_that_root_creates_belong_to_the_owner_of_the_database(path: Path) -> None:
    path.touch()
    os.chown(path, STRANGER, STRANGER)
    store = opened(path)
    store.bus.listen(Ready).close()
    owners = {file.name: file.stat().st_uid for file in path.parent.iterdir()}
    store.close()
    assert set(owners.values()) == {STRANGER}


def test_a_link_in_place_of_the_hints_folder_deletes_no_file_and_fails_no_enqueue(path: Path, tmp_path: Path) -> None:
    (precious := tmp_path / "precious").mkdir()
    (precious / "1-2-ready").write_text("kept")
    store = opened(path)
    store.bus.listen(Ready).close()
    world = World(store)
    beside(path, "-hints").rmdir()
    beside(path, "-hints").symlink_to(precious)
    id = world.enqueue()
    assert world.executions() == [id]
    with pytest.raises(StoreUnavailable, match="hints is a link"):
        store.bus.listen(Ready)
    store.close()
    assert (precious / "1-2-ready").read_text() == "kept"


HOLD = """
import fcntl, sys
with open(sys.argv[1]) as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held(lock: Path) -> Iterator[int]:
    """Another process that keeps the lock; its id."""
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process.pid
        finally:
            process.stdin.close()
            process.wait(PATIENCE_S)


def test_a_lock_that_another_process_keeps_times_out_and_the_error_names_the_holder(path: Path) -> None:
    store = opened(path, busy_s=0.2)
    world = World(store)
    id = world.enqueue()
    calls = StoreCalls(store)
    with held(beside(path, "-turn")) as pid:
        says = rf"was busy for 0\.2 s; nothing was accepted\. Process {pid} holds its lock, .*rota\.db-turn"
        with pytest.raises(StoreUnavailable, match=says):
            world.enqueue()
        with pytest.raises(StoreUnavailable, match=says):
            asyncio.run(calls.transact(enqueue.enqueue, world.header(), [world.item()]))
        with pytest.raises(StoreUnavailable, match=says):
            opened(path, busy_s=0.2)
    later = world.enqueue()
    assert set(world.executions()) == {id, later}
    calls.close()
    store.close()


def test_a_store_can_close_while_another_process_holds_the_lock(path: Path) -> None:
    store = opened(path, busy_s=0.2)
    world = World(store)
    with held(beside(path, "-turn")):
        with pytest.raises(StoreUnavailable, match="was busy"):
            world.enqueue()
        store.close()
    store._thread.join(PATIENCE_S)
    assert not store._thread.is_alive()


def test_the_doctor_takes_the_lock_and_names_its_holder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(path).close()
    monkeypatch.setattr(health, "LOCK_WAIT_S", 0.2)
    with held(beside(path, "-turn")) as pid:
        (write, *_) = examined(path)
    assert (write.check, write.verdict) == ("write", Verdict.FAIL)
    assert f"Process {pid} holds its lock" in write.found
    assert write.advice.startswith("let that process finish, or end it")
    (write, *_) = examined(path)
    assert write.verdict is not Verdict.FAIL


def examined(path: Path) -> list[Finding]:
    database = Database(url=f"sqlite:///{path}")
    return [finding for check in doctor_checks_sqlite.CHECKS for finding in check(database)]


@as_root
def test_another_user_can_neither_read_the_database_nor_take_its_lock() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        store = opened(folder / "rota.db")
        for suffix in ("", "-wal", "-shm", "-turn"):
            command = ["cat", f"{folder}/rota.db{suffix}"]
            done = subprocess.run(command, user=STRANGER, capture_output=True, text=True, timeout=PATIENCE_S)
            assert "Permission denied" in done.stderr
        store.close()
    finally:
        shutil.rmtree(folder)
