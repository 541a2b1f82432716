"""Rolling deploys: the newest deploy with a live worker is in force, for schedules, queues and job versions alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rota.domain.errors import DefinitionError
from rota.domain.job import Definition
from rota.domain.schedule import Spec
from rota.domain.trigger import Every
from rota.ops import deploy, fleet, retention, schedule, upkeep
from rota.store import deploys, reader, schedule_reader
from tests.support.deploys import GRACE_S, NEW, NEWER, OLD, SECOND, Code, Site
from tests.support.world import APP, LEASE_S, NAMESPACE, Boom, World, boom_after


@pytest.fixture
def site(world: World) -> Site:
    return Site(world)


# Rolling forward.


def test_the_first_worker_puts_its_deploy_in_force(site: Site) -> None:
    site.start(OLD)
    assert site.in_force() == OLD


def test_a_newer_deploy_is_in_force_at_once(site: Site) -> None:
    site.start(OLD)
    site.start(NEW)
    assert site.in_force() == NEW


def test_a_replaced_child_of_an_old_worker_changes_nothing(site: Site) -> None:
    old = site.start(OLD)
    site.start(NEW)
    site.kill(old)
    site.start(OLD)
    site.pass_s(GRACE_S)
    assert site.in_force() == NEW


def test_more_processes_of_an_old_worker_change_nothing(site: Site) -> None:
    site.start(OLD)
    site.start(NEW)
    for _ in range(3):
        site.start(OLD)
    assert site.in_force() == NEW


def test_an_old_supervisor_that_restarts_in_the_middle_of_a_roll_out_changes_nothing(site: Site) -> None:
    old = site.start(OLD)
    site.start(NEW)
    site.leave(old)
    site.pass_s(10 * GRACE_S)
    site.start(OLD)
    assert site.in_force() == NEW


def test_a_process_that_enqueues_with_old_code_changes_nothing(site: Site) -> None:
    site.start(NEW)
    site.register(OLD)
    site.register(Code({}, timeout_s=99.0, max_depth=99))
    assert site.in_force() == NEW


def test_a_process_that_enqueues_adds_the_jobs_that_the_database_does_not_have(site: Site) -> None:
    site.start(OLD)
    site.world.register("letter")
    assert site.world.status(site.world.enqueue("letter")) == "queued"


def test_the_same_code_is_the_same_deploy_whenever_it_starts(site: Site) -> None:
    assert [site.declare(code) for code in (OLD, NEW, OLD, NEW)] == [1, 2, 1, 2]


def test_of_two_new_workers_that_start_at_once_the_later_declaration_wins_in_either_order(site: Site) -> None:
    site.start(OLD)
    new, newer = site.declare(NEW), site.declare(NEWER)
    site.join(newer)
    site.join(new)
    assert site.in_force() == NEWER


def test_a_worker_that_lives_through_the_whole_roll_out_leaves_the_newest_in_force(site: Site) -> None:
    workers = [site.start(code) for code in (OLD, NEW, NEWER)]
    site.leave(*workers[:2])
    site.pass_s(GRACE_S)
    assert site.in_force() == NEWER


# Death between two steps.


def test_a_worker_that_dies_before_it_joins_has_applied_nothing(site: Site) -> None:
    site.start(OLD)
    site.register(NEW)
    site.declare(NEW)
    site.pass_s(10 * GRACE_S)
    site.start(OLD)
    assert site.in_force() == OLD


def test_a_join_that_is_not_committed_applies_nothing(site: Site) -> None:
    site.start(OLD)
    number = site.declare(NEW)
    with pytest.raises(Boom):
        site.world.store.transact(boom_after, deploy.use, NAMESPACE, APP, number, LEASE_S, "ann")
    assert site.in_force() == OLD
    site.join(number)
    assert site.in_force() == NEW


def test_a_new_worker_that_dies_and_comes_back_within_the_grace_keeps_its_schedules(site: Site) -> None:
    site.start(OLD)
    new = site.start(NEW)
    before = {row.name: row.id for row in site.world.store.read(schedule_reader.schedules, NAMESPACE, APP)}
    for _ in range(5):
        site.kill(new)
        site.pass_s(GRACE_S - 1)
        assert site.in_force() == NEW
        new = site.start(NEW)
    assert {row.name: row.id for row in site.world.store.read(schedule_reader.schedules, NAMESPACE, APP)} == before


def test_a_worker_whose_lease_ran_out_counts_until_it_is_declared_dead(site: Site) -> None:
    old = site.start(OLD)
    site.start(NEW)
    site.world.clock.advance(10 * GRACE_S)
    site.world.store.transact(fleet.beat, [old], LEASE_S)
    site.upkeep()
    assert site.in_force() == NEW
    site.world.store.transact(upkeep.rescue, LEASE_S)
    site.pass_s(GRACE_S)
    assert site.in_force() == OLD


@pytest.mark.parametrize(
    ("last", "end"), [(0, Site.kill), (1, Site.kill), (2, Site.kill), (2, Site.leave), (3, Site.kill), (4, Site.leave)]
)
def test_the_old_deploy_is_in_force_again_after_the_grace_however_the_new_worker_ends(
    site: Site, last: int, end: Callable[[Site, int], None]
) -> None:
    old = site.start(OLD)
    steps: list[Callable[[], object]] = [
        lambda: site.register(NEW),
        lambda: site.declare(NEW),
        lambda: site.start(NEW),
        site.upkeep,
        lambda: site.world.store.transact(fleet.beat, [old + 1], LEASE_S),
    ]
    for step in steps[: last + 1]:
        step()
    if last >= 2:
        assert site.in_force() == NEW
        end(site, old + 1)
        site.pass_s(GRACE_S - 1)
        assert site.in_force() == NEW
    site.pass_s(GRACE_S)
    assert site.in_force() == OLD


# Rolling back.


def test_when_the_new_workers_are_gone_any_supervisor_applies_the_old_deploy(site: Site) -> None:
    site.start(OLD)
    new = site.start(NEW)
    site.leave(new)
    site.pass_s(GRACE_S)
    assert site.in_force() == OLD


def test_after_a_roll_back_the_newer_deploy_may_come_again(site: Site) -> None:
    site.start(OLD)
    for _ in range(2):
        new = site.start(NEW)
        assert site.in_force() == NEW
        site.leave(new)
        site.pass_s(GRACE_S)
        assert site.in_force() == OLD


def test_without_a_live_worker_the_last_deploy_stays_in_force(site: Site) -> None:
    site.leave(site.start(OLD), site.start(NEW))
    site.pass_s(100 * GRACE_S)
    assert site.in_force() == NEW


def test_old_workers_that_start_long_after_the_new_ones_have_stopped_are_in_force_at_once(site: Site) -> None:
    site.leave(site.start(OLD), site.start(NEW))
    site.pass_s(GRACE_S)
    site.start(OLD)
    assert site.in_force() == OLD


def test_a_roll_back_by_two_deploys_skips_the_one_without_workers(site: Site) -> None:
    site.start(OLD)
    site.leave(site.start(NEW), site.start(NEWER))
    site.pass_s(GRACE_S)
    assert site.in_force() == OLD


def test_schedules_made_at_run_time_and_the_pauses_of_others_survive(site: Site) -> None:
    site.start(OLD)
    spec = Spec(job="tidy", trigger=Every(SECOND))
    site.world.store.transact(schedule.put, NAMESPACE, APP, "mine", spec, "ann")
    site.world.store.transact(schedule.pause, NAMESPACE, APP, "clean", "ann", "")
    new = site.start(NEW)
    site.leave(new)
    site.pass_s(GRACE_S)
    rows = {row.name: row for row in site.world.store.read(schedule_reader.schedules, NAMESPACE, APP)}
    assert rows.keys() == {"clean", "mine"}
    assert rows["clean"].paused_by == "ann"


def test_an_execution_is_recorded_with_the_version_in_force(site: Site) -> None:
    def version() -> int:
        return site.world.execution(site.world.enqueue("tidy")).job_version

    site.start(OLD)
    assert version() == 1
    new = site.start(NEW)
    assert version() == 2
    site.leave(new)
    site.pass_s(GRACE_S)
    assert version() == 1


# By command.


def test_an_operator_puts_an_older_deploy_in_force_at_once(site: Site) -> None:
    site.start(OLD)
    site.start(NEW)
    assert site.use(1)
    assert site.in_force() == OLD


def test_a_deploy_that_an_operator_chose_stays_in_force_when_other_workers_restart(site: Site) -> None:
    site.start(OLD)
    new = site.start(NEW)
    site.use(1)
    site.kill(new)
    site.start(NEW)
    site.pass_s(GRACE_S)
    assert site.in_force() == OLD


def test_a_deploy_without_workers_that_an_operator_chose_is_in_force_once_one_starts(site: Site) -> None:
    site.leave(site.start(OLD))
    site.start(NEW)
    assert not site.use(1)
    assert site.in_force() == NEW
    site.start(OLD)
    assert site.in_force() == OLD


def test_a_new_deploy_takes_precedence_over_the_one_that_an_operator_chose(site: Site) -> None:
    site.start(OLD)
    site.start(NEW)
    site.use(1)
    site.start(NEWER)
    assert site.in_force() == NEWER


def test_a_deploy_that_takes_precedence_is_in_force_although_it_is_known(site: Site) -> None:
    site.start(OLD)
    site.start(NEW)
    site.join(site.declare(OLD, takes_precedence=True))
    assert site.in_force() == OLD


def test_an_unknown_deploy_cannot_be_chosen(site: Site) -> None:
    site.start(OLD)
    with pytest.raises(DefinitionError, match="no deploy 7"):
        site.use(7)


# What can be seen of it.


def test_deploys_are_listed_with_their_workers_and_the_one_in_force(site: Site) -> None:
    site.start(OLD)
    site.start(OLD)
    site.world.clock.advance(5)
    site.start(NEW)
    assert (site.row(1).workers, site.row(1).is_in_force) == (2, False)
    assert (site.row(2).workers, site.row(2).is_in_force) == (1, True)
    assert site.row(2).live_since == site.world.clock.now()
    assert sorted(site.row(2).declared.schedules) == ["backup", "clean"]
    assert [row.deploy for row in site.world.store.read(reader.workers, NAMESPACE, 0)] == [1, 1, 2]


def test_deploys_of_two_apps_are_independent(site: Site) -> None:
    site.start(OLD)
    number = site.world.store.transact(deploy.declare, NAMESPACE, "other", [], [], {})
    site.world.join(app="other", deploy=number)
    assert number == 1
    assert site.in_force() == OLD


def test_old_deploys_are_pruned_but_not_the_one_in_force_nor_those_of_known_workers(site: Site) -> None:
    site.start(OLD)
    site.declare(NEW)
    site.leave(site.start(NEWER))
    site.pass_s(0)
    site.world.clock.advance(40 * 86400)
    begun = site.world.store.transact(retention.begin)
    assert begun is not None
    policy = site.world.store.read(retention.policy, 30 * 86400)
    assert site.world.store.transact(retention.prune_others, begun.begun_at, policy, "drop_deploys") == 1
    assert [row.number for row in site.world.store.read(deploys.all_deploys, NAMESPACE)] == [3, 1]


# Numbers of versions.


def test_versions_are_counted_for_each_job_and_app(world: World) -> None:
    def versions(job: str, app: str = APP) -> list[int]:
        found = []
        for timeout_s in (1, 2, 3):
            world.register(Definition(name=job, timeout_s=timeout_s), app=app)
            found.append(world.execution(world.enqueue(job, app=app)).job_version)
        return found

    assert versions("letter") == [1, 2, 3]
    assert versions("parcel") == [1, 2, 3]
    assert versions("letter", app="post") == [1, 2, 3]
