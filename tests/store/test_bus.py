"""Hints between processes: they arrive, they may be lost, and they never block a sender."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.clock import SystemClock
from rota.store.hints import CancelAsked, Due, Ended, Ready
from rota.store.sqlite.bus import SqliteBus
from rota.store.sqlite.store import SqliteStore
from tests.store.running import line, program
from tests.support.opener import Opener
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.world import World


@pytest.fixture
def bus(path: Path) -> Iterator[SqliteBus]:
    bus = SqliteBus(str(path), SystemClock())
    yield bus
    bus.close()


@pytest.fixture
def folder(path: Path) -> Path:
    return path.with_name(f"{path.name}-hints")


def arrived(fileno: int) -> bool:
    return bool(select.select([fileno], [], [], PATIENCE_S)[0])


def test_a_hint_arrives_at_listeners_for_its_kind(bus: SqliteBus) -> None:
    ready, other = bus.listen(Ready, Due), bus.listen(Ended)
    try:
        bus.send([Ready({1: 0}), Ready({2: 0}), CancelAsked(7), Due(9), Due(5)])
        assert arrived(ready.fileno())
        assert ready.take() == [Ready({1: 0, 2: 0}), Due(5)]
        assert ready.take() == other.take() == []
    finally:
        ready.close()
        other.close()


def test_sending_without_listeners_does_nothing(bus: SqliteBus, folder: Path) -> None:
    bus.send([Ready({1: 0})])
    assert not folder.exists()


def test_hints_arrive_in_other_processes(path: Path, bus: SqliteBus) -> None:
    with program("listen", path) as listener:
        assert line(listener) == "listening"
        bus.send([Ready({3: 0}), Due(5)])
        assert line(listener) == str(Ready({3: 0}))
        bus.send([Ended(("a", "b"))])
        assert line(listener) == str(Ended(("a", "b")))


def test_a_commit_sends_hints_to_other_processes(path: Path, world: World) -> None:
    with program("listen", path) as listener:
        assert line(listener) == "listening"
        world.enqueue()
        assert line(listener).startswith("Ready(")


def test_a_listener_that_starts_later_gets_hints(bus: SqliteBus) -> None:
    for _ in range(5):
        bus.send([Ready({1: 0})])
        late = bus.listen(Ready)
        bus.send([Ready({2: 0})])
        assert arrived(late.fileno())
        assert late.take() == [Ready({2: 0})]
        late.close()


def test_the_socket_of_a_dead_process_is_removed(path: Path, bus: SqliteBus, folder: Path) -> None:
    with program("listen", path) as listener:
        assert line(listener) == "listening"
        assert len(os.listdir(folder)) == 1
        listener.send_signal(signal.SIGKILL)
        listener.wait(PATIENCE_S)
    assert len(os.listdir(folder)) == 1
    bus.send([Ready({1: 0})])
    assert os.listdir(folder) == []


def test_a_closed_listener_leaves_no_socket(bus: SqliteBus, folder: Path) -> None:
    listener = bus.listen(Ready)
    assert len(os.listdir(folder)) == 1
    listener.close()
    assert os.listdir(folder) == []


def test_a_path_that_is_too_long_for_a_socket_works(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    store = SqliteStore(f"sqlite:///{deep}/rota.db")
    listener = store.bus.listen(Ready)
    try:
        World(store).enqueue()
        assert arrived(listener.fileno())
        assert [type(hint) for hint in listener.take()] == [Ready]
        listener.close()
        assert os.listdir(f"{deep}/rota.db-hints") == []
    finally:
        listener.close()
        store.close()


def test_a_stuck_listener_does_not_block_senders(bus: SqliteBus) -> None:
    lazy = bus.listen(Ready)
    keen = bus.listen(Ended)
    try:
        for number in range(20_000):
            bus.send([Ready({number: 0})])
        bus.send([Ended(("x",))])
        assert arrived(keen.fileno())
        assert keen.take() == [Ended(("x",))]
        assert lazy.take()
    finally:
        lazy.close()
        keen.close()


def test_a_hint_that_is_too_large_for_one_message_is_not_sent(bus: SqliteBus) -> None:
    listener = bus.listen(Ended, Ready)
    try:
        bus.send([Ended(tuple(f"{number:036}" for number in range(5_000)))])
        bus.send([Ready({1: 0})])
        eventually(lambda: Ready({1: 0}) in listener.take(), what="the next hint")
    finally:
        listener.close()


@pytest.mark.parametrize(
    "noise", [b"", b"not json", b'[{"type":"unknown"}]', b"\xff" * 100, b"[" * 50_000], ids=range(5)
)
def test_malformed_hints_are_ignored(bus: SqliteBus, folder: Path, noise: bytes) -> None:
    listener = bus.listen(Ready)
    try:
        (name,) = os.listdir(folder)
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(noise, f"/proc/self/fd/{opened}/{name}")  # A socket's path has at most 107 characters.
        os.close(opened)
        bus.send([Ready({1: 0})])
        assert eventually(listener.take, what="the hint") == [Ready({1: 0})]
    finally:
        listener.close()


def test_other_files_in_the_folder_are_ignored(bus: SqliteBus, folder: Path) -> None:
    listener = bus.listen(Ready)
    try:
        (folder / "notes-ready").write_text("hello")
        (folder / "x").mkdir()
        bus.send([Ready({1: 0})])
        assert arrived(listener.fileno())
        assert listener.take() == [Ready({1: 0})]
    finally:
        listener.close()
    assert sorted(os.listdir(folder)) == ["notes-ready", "x"]


def test_only_the_owner_can_open_the_folder(bus: SqliteBus, folder: Path) -> None:
    listener = bus.listen(Ready)
    listener.close()
    assert folder.stat().st_mode & 0o077 == 0


def test_a_removed_folder_is_recreated(bus: SqliteBus, folder: Path) -> None:
    bus.listen(Ready).close()
    folder.rmdir()
    bus.send([Ready({1: 0})])
    listener = bus.listen(Ready)
    try:
        bus.send([Ready({1: 0})])
        assert arrived(listener.fileno())
    finally:
        listener.close()


def test_threads_that_send_at_once_close_no_descriptor_twice(bus: SqliteBus, tmp_path: Path) -> None:
    """Each listener that comes or goes changes the folder, which every sender then opens anew."""
    folders = tmp_path / "folders"
    folders.mkdir()
    enough = threading.Event()

    def send() -> None:
        while not enough.is_set():
            bus.send([Due(1)])

    threads = [threading.Thread(target=send) for _ in range(3)]
    with Opener(folders) as opener:
        for thread in threads:
            thread.start()
        for _ in range(500):
            bus.listen(Due).close()
        enough.set()
        for thread in threads:
            thread.join()
    assert opener.stolen == 0
