"""A bad network between the clients and a server that is well: silence, one way only, up and down, byte by byte."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from rota.domain.errors import StoreUnavailable
from rota.store import reader
from rota.store.postgres.link import SET_UP_S
from rota.store.postgres.store import PostgresStore
from tests.faults.scene import FIRST_CLAIM_S, Scene
from tests.support.proving import proof
from tests.support.proxy import Proxy, Way

CONNECT_S = 2
"""The time that a connection may take to be made. To set it up may take as long as `postgres_link.SET_UP_S`."""


@pytest.mark.parametrize("ways", [(), proof(("to_client",))])
def test_a_silent_network_for_longer_than_the_lease_loses_nothing(
    url: str, proxy: Proxy, tmp_path: Path, ways: Sequence[Way]
) -> None:
    with Scene(tmp_path, proxy.through(url), direct=url, lease_s=1, busy_s=8) as scene:
        scene.fill(50)
        worker = scene.worker("--concurrency", "4")
        scene.callers(4)
        threading.Event().wait(0.3)
        proxy.black_hole(*ways)
        threading.Event().wait(2)
        proxy.heal()
        scene.first_claim_after(scene.now())
        scene.check()
        assert len(worker.complaints()) <= 12, worker.log()


def test_a_flapping_network_loses_nothing(url: str, proxy: Proxy, tmp_path: Path) -> None:
    with Scene(tmp_path, proxy.through(url), direct=url) as scene:
        scene.fill(100)
        worker = scene.worker("--concurrency", "4")
        scene.callers(4)
        proxy.flap(up_s=0.25, down_s=0.25)
        threading.Event().wait(2.5)
        proxy.heal()
        assert scene.first_claim_after(scene.now()) < FIRST_CLAIM_S
        assert proxy.counts.outages >= 3
        scene.check()
        assert len(worker.complaints()) <= 12, worker.log()


def test_a_network_with_a_byte_every_100_ms_counts_as_silent_and_loses_nothing(
    url: str, proxy: Proxy, tmp_path: Path
) -> None:
    with Scene(tmp_path, proxy.through(url), direct=url, lease_s=2, busy_s=3) as scene:
        worker = scene.worker("--concurrency", "4")
        callers = scene.callers(2)
        threading.Event().wait(0.3)
        proxy.slow(100)
        threading.Event().wait(3.5)
        proxy.heal()
        proxy.cut()
        scene.first_claim_after(scene.now())
        scene.check()
        assert all("nothing was accepted" in refusal for refusal in callers.refusals)
        assert len(worker.complaints()) <= 16, worker.log()


def test_calls_on_a_silent_network_end_after_their_timeout(url: str, proxy: Proxy) -> None:
    """On connections that exist: writes and reads. Nothing of TCP would end them."""
    store = PostgresStore(_impatient(proxy.through(url)), busy_s=1)
    try:
        _work(store)
        proxy.black_hole("to_client")
        for call in (_work, _read):
            before = time.monotonic()
            with pytest.raises(StoreUnavailable):
                call(store)
            assert time.monotonic() - before < 1 + CONNECT_S + SET_UP_S + 3
        proxy.heal()
        assert _read(store) == []
    finally:
        store.close()


def test_connecting_on_a_silent_network_ends_after_its_timeout(url: str, proxy: Proxy) -> None:
    proxy.black_hole()
    before = time.monotonic()
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        PostgresStore(_impatient(proxy.through(url)), busy_s=1)
    assert time.monotonic() - before < 1 + CONNECT_S + 3


def test_a_network_that_becomes_silent_during_a_connect_ends_after_its_timeout(url: str, proxy: Proxy) -> None:
    """The server checks the password, sends its welcome, and then nothing more arrives."""
    PostgresStore(url).close()
    proxy.slow(8)  # The welcome has some hundred bytes, our first question more.
    before = time.monotonic()
    with pytest.raises(StoreUnavailable):
        PostgresStore(_impatient(proxy.through(url)), busy_s=1)
    assert time.monotonic() - before < 1 + CONNECT_S + SET_UP_S + 3


def _impatient(url: str) -> str:
    return f"{url}?connect_timeout={CONNECT_S}"


def _work(store: PostgresStore) -> object:
    return store.transact(lambda tx: tx.run("set_worker_state", worker=0, state="live"))


def _read(store: PostgresStore) -> object:
    return store.read(reader.workers, "default", 0)
