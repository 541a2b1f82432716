"""Which deploy is in force: the newest that a live worker declares, and for a grace the one that was."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from rota.domain.deploy import Deploy, declared, decode, digest, encode, in_force
from rota.domain.job import Definition, Queue
from rota.domain.schedule import Spec
from rota.domain.trigger import Every

NOW = 1_000_000
GRACE = 60


def live(number: int, precedence: int | None = None) -> Deploy:
    return Deploy(number, precedence or number, 1, None)


def gone(number: int, since: int, precedence: int | None = None) -> Deploy:
    return Deploy(number, precedence or number, 0, NOW - since)


def current(*deploys: Deploy, applied: int | None = None) -> int | None:
    return in_force(deploys, applied, NOW, GRACE)


def test_without_any_deploy_none_is_in_force() -> None:
    assert current() is None


def test_the_first_deploy_with_a_live_worker_is_in_force() -> None:
    assert current(live(1)) == 1


def test_a_newer_deploy_takes_over_at_once() -> None:
    assert current(live(1), live(2), applied=1) == 2


def test_an_older_deploy_that_starts_again_changes_nothing() -> None:
    assert current(live(1), live(2), applied=2) == 2


def test_a_deploy_stays_in_force_for_a_grace_after_its_last_worker() -> None:
    assert current(live(1), gone(2, since=GRACE - 1), applied=2) == 2


def test_after_the_grace_the_older_deploy_is_in_force_again() -> None:
    assert current(live(1), gone(2, since=GRACE), applied=2) == 1


def test_a_newer_deploy_does_not_wait_for_the_grace_of_the_one_before() -> None:
    assert current(gone(1, since=1), live(2), applied=1) == 2


def test_without_live_workers_the_deploy_in_force_stays() -> None:
    assert current(gone(2, since=100 * GRACE), applied=2) == 2
    assert current(applied=2) == 2


def test_a_deploy_whose_worker_died_before_it_joined_is_not_in_force() -> None:
    assert current(live(1), Deploy(2, 2, 0, None), applied=1) == 1


def test_only_the_deploy_that_was_in_force_has_a_grace() -> None:
    assert current(live(1), gone(2, since=1), gone(3, since=GRACE), applied=3) == 1


def test_the_precedence_counts_and_not_the_number() -> None:
    assert current(live(1, precedence=9), live(2), applied=2) == 1
    assert current(live(1, precedence=9), gone(2, since=1), applied=2) == 1
    assert current(live(2), gone(1, since=GRACE, precedence=9), applied=2) == 2


def test_a_clock_that_went_back_a_little_does_not_end_the_grace_and_one_that_went_back_far_does() -> None:
    assert current(live(1), gone(2, since=-5), applied=2) == 2
    assert current(live(1), gone(2, since=-5 * GRACE), applied=2) == 1


def test_the_rule_settles_at_once_and_never_picks_a_dead_deploy_over_the_one_in_force() -> None:
    kinds: list[Callable[[int], Deploy]] = [
        live,
        lambda number: gone(number, since=1),
        lambda number: gone(number, since=GRACE),
        lambda number: Deploy(number, number, 0, None),
    ]
    for made in itertools.product(kinds, repeat=3):
        deploys = [kind(number) for number, kind in enumerate(made, 1)]
        for applied in (None, 1, 2, 3):
            chosen = in_force(deploys, applied, NOW, GRACE)
            assert in_force(deploys, chosen, NOW, GRACE) == chosen
            assert chosen == applied or any(one.number == chosen and one.workers for one in deploys)


def declaration(jobs: list[str], queues: list[str], schedules: dict[str, int]) -> str:
    return encode(
        declared(
            [Definition(name=job) for job in jobs],
            [Queue(name=queue) for queue in queues],
            {name: Spec(job="a", trigger=Every(seconds)) for name, seconds in schedules.items()},
        )
    )


def test_the_order_of_declarations_does_not_matter() -> None:
    one = declaration(["a", "b"], ["x", "y"], {"s": 1, "t": 2})
    assert one == declaration(["b", "a"], ["y", "x"], {"t": 2, "s": 1})


@pytest.mark.parametrize(
    "other",
    [
        declaration(["a"], ["x"], {"s": 1}),
        declaration(["a", "b"], [], {"s": 1}),
        declaration(["a", "b"], ["x"], {"s": 2}),
        declaration(["a", "b"], ["x"], {}),
    ],
)
def test_another_job_queue_or_schedule_is_another_deploy(other: str) -> None:
    assert digest(other) != digest(declaration(["a", "b"], ["x"], {"s": 1}))


def test_a_stored_declaration_reads_back_as_it_was() -> None:
    text = declaration(["a"], ["x"], {"s": 1})
    assert encode(decode(text)) == text
