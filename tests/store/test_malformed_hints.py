"""Hints from strangers: malformed payloads are ignored and counted, and wake-ups still arrive afterwards.

Every role that may connect to the database can NOTIFY, and every process that may write into the folder of sockets can
send a datagram.
"""

from __future__ import annotations

import logging
import os
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from rota.clock import ManualClock, SystemClock
from rota.store.hints import CancelAsked, Due, Ended, Hint, HintDecoder, Listener, Ready
from rota.store.postgres import bus as postgres_bus
from rota.store.postgres import url as postgres_url
from rota.store.postgres.bus import PostgresBus
from rota.store.sqlite.bus import SqliteBus
from tests.support import postgres
from tests.support.databases import fresh_database
from tests.support.waiting import PATIENCE_S, eventually

HUGE = "9" * 30
MALFORMED = [
    '[{"type":"due","x":' + "[" * 3000 + "]" * 3000 + ',"at":1}]',
    "[" * 7000,
    f'[{{"type":"due","at":{HUGE}}}]',
    f'[{{"type":"due","at":-{HUGE}}}]',
    f'[{{"type":"cancel","worker":{HUGE}}}]',
    f'[{{"type":"ready","lanes":{{"{HUGE}":1}}}}]',
    f'[{{"type":"ready","lanes":{{"1":{HUGE}}}}}]',
    '[{"type":"due","at":1e999999999}]',
    '[{"type":"due","at":' + "9" * 5000 + "}]",
    '[{"type":"ended","ids":["' + "x" * 1000 + '"]}]',
    '[{"type":"ended","ids":["\\ud800"]}]',
    '{"type":"due","at":1}',
    "[null]",
    "",
]
WATCHED = (Ready, Due, CancelAsked, Ended)


@pytest.fixture(scope="module")
def url() -> str:
    return fresh_database()


@pytest.fixture(scope="module")
def stranger(url: str) -> Iterator[psycopg.Connection]:
    """A connection of a role that may do nothing but connect."""
    server, name = postgres.shared(), url.rpartition("/")[2]
    role = sql.Identifier(f"stranger_{name}")
    server.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
    with server.connect(name, f"stranger_{name}") as connection:
        connection.autocommit = True
        yield connection
    server.execute(sql.SQL("DROP ROLE {}").format(role))


def notify(connection: psycopg.Connection, payload: str) -> None:
    connection.execute("SELECT pg_notify('rota_hints', %s)", (payload,))


@pytest.fixture
def bus(url: str) -> Iterator[PostgresBus]:
    bus = PostgresBus(postgres_url.parse(url))
    yield bus
    bus.close()


def test_every_malformed_notify_is_ignored_and_the_next_hint_still_arrives(
    bus: PostgresBus, url: str, stranger: psycopg.Connection
) -> None:
    listener, sender = bus.listen(*WATCHED), PostgresBus(postgres_url.parse(url))
    try:
        eventually(lambda: bus.is_live, what="LISTEN")
        for payload in MALFORMED:
            notify(stranger, payload)
        sender.send([Due(7)])
        assert awaited(listener) == [Due(7)]
        assert bus._decoder.ignored == len(MALFORMED)
    finally:
        sender.close()
        listener.close()


def test_the_listening_thread_survives_any_error_and_connects_again(
    bus: PostgresBus, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = [SystemExit(1), MemoryError(), RecursionError(), ValueError("filedescriptor out of range")]
    receive = bus._receive

    def fail(link: object) -> None:
        if errors:
            raise errors.pop()
        receive(link)  # type: ignore[arg-type]

    monkeypatch.setattr(bus, "_receive", fail)
    monkeypatch.setattr(postgres_bus, "LONGEST_PAUSE_S", 0.05)
    listener, sender = bus.listen(*WATCHED), PostgresBus(postgres_url.parse(url))
    try:
        eventually(lambda: not errors and bus.is_live, what="the fifth connection")
        sender.send([Due(7)])
        assert awaited(listener) == [Due(7)]
    finally:
        sender.close()
        listener.close()


def test_a_listening_thread_that_ended_is_started_again_by_the_next_use(bus: PostgresBus) -> None:
    bus._thread = ended = threading.Thread(target=lambda: None)
    ended.start()
    ended.join()
    bus.listen(Ready).close()
    eventually(lambda: bus.is_live, what="LISTEN")


def test_ids_that_strangers_ask_for_are_bounded(bus: PostgresBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_bus, "MOST_WANTED", 10)
    for number in range(100):
        bus._remember([f"{number}"])
    assert len(bus._wanted) == 11


def test_the_repeated_hint_of_an_end_does_not_wait_for_others(bus: PostgresBus, url: str) -> None:
    other = PostgresBus(postgres_url.parse(url))
    listener, ours = other.listen(Ended), bus.listen(Ready)
    try:
        eventually(lambda: bus.is_live and other.is_live, what="LISTEN")
        bus._ended.append((SystemClock().monotonic(), Ended(("x",))))
        with bus._lock:  # As for an announcement of this process, while its thread sleeps.
            bus._remember(["x"])
        assert awaited(listener) == [Ended(("x",))]
    finally:
        ours.close()
        listener.close()
        other.close()


def test_every_malformed_datagram_is_ignored_and_the_next_hint_still_arrives(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = SqliteBus(str(path), SystemClock())
    listener = bus.listen(*WATCHED)
    try:
        monkeypatch.chdir(f"{path}-hints")
        (name,) = os.listdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            for payload in [*map(str.encode, MALFORMED), b"\xff" * 100, b'[{"type":"ended","ids":["\xff"]}]']:
                sender.sendto(payload, name)
                assert listener.take() == []
        bus.send([Due(7)])
        assert awaited(listener) == [Due(7)]
    finally:
        listener.close()
        bus.close()


def test_the_log_names_malformed_hints_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    decoder = HintDecoder(clock, "the channel rota_hints")
    with caplog.at_level(logging.WARNING, "rota.store"):
        for _ in range(200):
            assert decoder.decode(b"[" * 7000) == []
            clock.advance(1.0)
    assert decoder.ignored == 200
    assert [record.getMessage().partition(": ")[2][:3] for record in caplog.records] == ["1 i", "61 ", "121", "181"]


def awaited(listener: Listener) -> list[Hint]:
    assert select.select([listener.fileno()], [], [], PATIENCE_S)[0]
    return listener.take()
