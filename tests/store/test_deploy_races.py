"""Deploys of one app that start, end and are applied at the same time on PostgreSQL."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

import pytest

from rota.ops import deploy
from tests.store.arena import Arena
from tests.support.deploys import GRACE_S, NEW, NEWER, OLD, Site, join
from tests.support.proving import sampled
from tests.support.world import APP, LEASE_S, NAMESPACE, World

CODES = (OLD, NEW, NEWER)


@pytest.fixture
def arena() -> Iterator[Arena]:
    with Arena() as arena:
        yield arena


def sites_of(arena: Arena, count: int) -> list[Site]:
    """Each with a connection of its own."""
    return [Site(World(arena.store(), arena.clock)) for _ in range(count)]


def test_workers_that_start_at_once_with_the_same_new_code_make_one_deploy(arena: Arena) -> None:
    sites = sites_of(arena, 6)
    arena.all_at_once([partial(site.start, NEW) for site in sites])
    assert sites[0].in_force() == NEW
    assert sites[0].row(1).workers == 6


def test_the_last_of_several_concurrent_declarations_is_in_force_as_a_whole(arena: Arena) -> None:
    sites = sites_of(arena, len(CODES))
    arena.all_at_once([partial(site.start, code) for site, code in zip(sites, CODES, strict=True)])
    last = {sites[0].declare(code): code for code in CODES}[3]
    assert sites[0].in_force() == last


def test_a_worker_that_joins_during_a_roll_back_waits_for_it_and_is_in_force_after_it(arena: Arena) -> None:
    (site,) = sites_of(arena, 1)
    site.start(OLD)
    site.leave(site.start(NEW))
    arena.clock.advance(GRACE_S)
    with arena.held_open(deploy.settle, NAMESPACE, APP, LEASE_S) as rolling_back:
        joining = arena.start(join, 2)
        arena.wait_until_blocked(joining)
    assert rolling_back.result() == 1
    joining.result()
    assert site.in_force() == NEW


@pytest.mark.parametrize("seed", sampled(range(20), 1))
def test_a_storm_of_deploys_leaves_the_newest_live_one_in_force_and_never_a_mixture(arena: Arena, seed: int) -> None:
    def storm(site: Site, chance: random.Random) -> None:
        workers: list[int] = []
        for _ in range(8):
            match chance.randrange(6):
                case 0 | 1:
                    workers.append(site.start(chance.choice(CODES)))
                case 2 if workers:
                    site.leave(workers.pop())
                case 3 if workers:
                    site.kill(workers.pop(0))
                case 4:
                    site.register(chance.choice(CODES))
                case _:
                    site.upkeep()
            assert site.in_force() in CODES
        site.leave(*workers)

    sites = sites_of(arena, 5)
    for code in CODES:
        sites[0].declare(code)
    sites[0].start(OLD)
    arena.all_at_once([partial(storm, site, random.Random(f"{seed} {place}")) for place, site in enumerate(sites[1:])])
    sites[0].start(NEW)
    sites[0].pass_s(GRACE_S)
    assert sites[0].in_force() == NEW
