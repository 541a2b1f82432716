"""What jobs need and workers offer."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain import requirement
from rota.domain.errors import DefinitionError
from rota.domain.requirement import Needs, Offers
from rota.ops.gates.offers import PLAIN_OFFERS


def room(wanted: Needs, given: Offers, *running: tuple[Needs, int]) -> int | None:
    used = requirement.used([(requirement.written(one), count) for one, count in running])
    return requirement.most(requirement.written(wanted), requirement.encode(given), used)


def test_a_job_that_needs_nothing_has_no_requirements() -> None:
    assert requirement.written(requirement.needs(None, (), {})) == ""
    assert requirement.written(requirement.needs("default", [], {})) == ""


def test_the_order_of_declared_needs_does_not_matter() -> None:
    one = requirement.needs("cpu", ["b", "a", "a"], {"y": 1, "x": 2})
    other = requirement.needs("cpu", ["a", "b"], {"x": 2.0, "y": 1.0})
    assert requirement.written(one) == requirement.written(other)


@pytest.mark.parametrize(
    ("wanted", "given", "expected"),
    [
        (Needs(), Offers(), None),
        (Needs(), Offers(tags=["eu"], resources={"gpu": 1.0}), None),
        (Needs(), Offers(pools=("cpu",)), 0),
        (Needs(pool="cpu"), Offers(), 0),
        (
            Needs(pool="cpu"),
            Offers(
                pools=(
                    "cpu",
                    "default",
                )
            ),
            None,
        ),
        (Needs(tags=["eu", "gpu"]), Offers(tags=["eu"]), 0),
        (Needs(tags=["eu"]), Offers(tags=["eu", "gpu"]), None),
        (Needs(resources={"gpu": 1.0}), Offers(), 0),
        (Needs(resources={"gpu": 1.0}), Offers(resources={"gpu": 2.0}), 2),
        (Needs(resources={"gpu": 0.5, "memory": 3.0}), Offers(resources={"gpu": 2.0, "memory": 8.0}), 2),
        (Needs(resources={"cpu": 0.1}), Offers(resources={"cpu": 0.3}), 3),
        (Needs(resources={"gpu": 0.0}), Offers(), None),
        (Needs(pool="x", tags=["y"], resources={"z": 1.0}), Offers(everything=True), None),
    ],
)
def test_a_worker_takes_jobs_whose_needs_it_offers(wanted: Needs, given: Offers, expected: int | None) -> None:
    assert room(wanted, given) == expected
    assert requirement.fits(requirement.written(wanted), requirement.encode(given)) is (expected != 0)


def test_running_executions_use_their_share_of_the_resources() -> None:
    gpu, memory = Needs(resources={"gpu": 1.0}), Needs(resources={"memory": 2.0})
    given = Offers(resources={"gpu": 2.0, "memory": 5.0})
    assert room(gpu, given, (gpu, 1)) == 1
    assert room(gpu, given, (gpu, 2)) == 0
    assert room(gpu, given, (gpu, 3)) == 0
    assert room(memory, given, (gpu, 2), (memory, 1)) == 1


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"pool": "no such name!"}, "a pool's name"),
        ({"tags": "eu"}, "a list of names"),
        ({"tags": ["a b"]}, "a worker's tag"),
        ({"tags": [f"t{n}" for n in range(30)]}, "at most 20"),
        ({"resources": {"gpu": -1}}, "must be an amount"),
        ({"resources": {"gpu": True}}, "must be an amount"),
        ({"resources": {"gpu": float("nan")}}, "must be an amount"),
        ({"resources": {"memory": "lots"}}, "such as '512MB'"),
        ({"resources": {"bad name": 1}}, "a resource's name"),
        ({"resources": {f"r{n}": 1 for n in range(30)}}, "at most 20"),
    ],
)
def test_invalid_requirements_are_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        requirement.needs(said.get("pool"), said.get("tags", ()), said.get("resources", {}))


def test_sizes_are_amounts() -> None:
    assert requirement.amounts({"memory": "2GB"}) == {"memory": 2.0 * 2**30}


@pytest.mark.parametrize("pools", [[], ["default"]])
def test_a_worker_that_is_started_without_options_has_the_text_of_default_offers(pools: list[str]) -> None:
    """Claims compare the text: a worker with other offers does not use their fast path."""
    assert requirement.encode(requirement.offers(pools, [], {})) == PLAIN_OFFERS == "{}"


def test_needs_and_offers_in_words() -> None:
    wanted = requirement.needs("cpu", ["eu"], {"gpu": 1})
    assert requirement.words(requirement.written(wanted)) == "pool cpu, tag eu, 1 gpu"
    assert requirement.words("") == ""
    assert requirement.offered(requirement.offers(["cpu"], ["eu"], {"gpu": 2})) == "pool cpu, eu, 2 gpu"
    assert requirement.offered(Offers()) == ""
