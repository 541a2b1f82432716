"""Hints are sent after the caller's commit if Rota is notified of it, and never before."""

from __future__ import annotations

import psycopg
import pytest

from rota.sdk.app import registry_of
from rota.store.hints import Due, Ready
from tests.support.waiting import eventually
from tests.transaction.callers import alchemy_connection, alchemy_session, django_atomic, plain
from tests.transaction.shop import Shop


@pytest.mark.parametrize("kind", [django_atomic, alchemy_session("psycopg"), alchemy_session("psycopg", scoped=True)])
def test_a_commit_that_rota_is_notified_of_sends_hints(shop: Shop, kind: type) -> None:
    registry_of(shop.app).connection.store()
    with shop.hints() as bus, kind(shop.url) as caller:
        for _ in range(2):
            shop.send.within(caller.connection).enqueue("a")
            shop.send.options(delay="1h").within(caller.connection).enqueue("a")
            assert bus.hints == []
            caller.commit()
            assert [type(hint) for hint in bus.hints] == [Ready, Due]
            caller.run("SELECT 1")
            caller.commit()
            assert len(bus.hints) == 2
            bus.hints.clear()


@pytest.mark.parametrize("kind", [django_atomic, alchemy_session("psycopg")])
def test_a_rollback_sends_no_hint(shop: Shop, kind: type) -> None:
    registry_of(shop.app).connection.store()
    with shop.hints() as bus, kind(shop.url) as caller:
        shop.send.within(caller.connection).enqueue("a")
        caller.rollback()
        caller.run("SELECT 1")
        caller.commit()
        assert bus.hints == []


def test_the_release_of_a_savepoint_is_no_commit(shop: Shop) -> None:
    registry_of(shop.app).connection.store()
    with shop.hints() as bus, alchemy_session("psycopg")(shop.url) as caller:
        with caller.connection.begin_nested():
            shop.send.within(caller.connection).enqueue("a")
        assert bus.hints == []
        caller.commit()
        assert [type(hint) for hint in bus.hints] == [Ready]


@pytest.mark.parametrize("kind", [plain, alchemy_connection("psycopg")])
def test_a_commit_of_a_plain_connection_sends_no_hint_without_notify(shop: Shop, kind: type) -> None:
    registry_of(shop.app).connection.store()
    with shop.hints() as bus, kind(shop.url) as caller:
        shop.send.within(caller.connection).enqueue("a")
        caller.commit()
        assert bus.hints == []


def test_notify_sends_hints_with_the_commit(shop: Shop) -> None:
    listener = shop.store.bus.listen(Ready)
    eventually(lambda: getattr(shop.store.bus, "is_live", True), what="a bus that listens")
    with psycopg.connect(shop.url) as connection:
        x = shop.send.within(connection, notify=True).enqueue("a")
        assert listener.take() == []
        connection.commit()
    (hint,) = eventually(listener.take, what="the hint")
    ((lane, rank),) = shop.query("SELECT lane, rank FROM rota.ready WHERE id = %s", x.id)
    assert hint == Ready({lane: rank})
    shop.query("""SELECT rota.enqueue('send', '{"to": "b"}', notify => true)""")
    (hint,) = eventually(listener.take, what="the hint of SQL")
    assert isinstance(hint, Ready)
    assert set(hint.lanes) == {lane}
    listener.close()
