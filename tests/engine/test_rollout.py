"""The step by which every supervisor notices that another deploy should be in force."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from rota.clock import ManualClock
from rota.engine.async_store import AsyncStore, StoreCalls
from rota.engine.rollout import Rollout
from rota.store.sqlite.store import SqliteStore
from tests.support.deploys import GRACE_S, NEW, OLD, Site
from tests.support.world import APP, LEASE_S, NAMESPACE, World


@pytest.fixture
def site() -> Iterator[Site]:
    clock = ManualClock()
    store = SqliteStore("sqlite://:memory:", clock, inline=True)
    yield Site(World(store, clock))
    store.close()


async def _step(rollout: Rollout) -> float | None:
    return await rollout.step()


def step(rollout: Rollout) -> float | None:
    return asyncio.run(_step(rollout))


def supervisor_of(site: Site, *workers: int) -> Rollout:
    return Rollout(AsyncStore(site.world.store, site.world.clock), NAMESPACE, APP, LEASE_S, lambda: workers)


def test_a_supervisor_with_old_code_rolls_back_when_the_new_workers_are_gone(site: Site) -> None:
    old = supervisor_of(site, site.start(OLD))
    site.leave(site.start(NEW))
    step(old)
    assert site.in_force() == NEW
    site.world.clock.advance(GRACE_S)
    step(old)
    assert site.in_force() == OLD


def test_a_supervisor_whose_own_child_cannot_be_imported_any_more_rolls_back_as_well(site: Site) -> None:
    site.start(OLD)
    site.leave(site.start(NEW))
    site.world.clock.advance(GRACE_S)
    step(supervisor_of(site))
    assert site.in_force() == OLD


def test_a_superseded_supervisor_says_once_which_deploy_is_in_force_and_how_to_change_that(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    old = supervisor_of(site, site.start(OLD))
    step(old)
    assert caplog.messages == []
    new = site.start(NEW)
    step(old)
    step(old)
    (words,) = caplog.messages
    assert "deploy 1 of app shop is superseded" in words
    assert "of deploy 2 are in force" in words
    assert "`rota deploys use shop 1`" in words
    site.leave(new)
    site.world.clock.advance(GRACE_S)
    step(old)
    step(old)
    assert caplog.messages[1:] == ["deploy 1 of app shop is in force again"]


def test_a_rollout_check_writes_nothing_if_nothing_has_changed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = site.start(OLD)

    rollout = supervisor_of(site, worker)
    monkeypatch.setattr(StoreCalls, "transact", None)
    step(rollout)
