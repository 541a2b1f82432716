"""What executions wait for, in words."""

from __future__ import annotations

import pytest

from rota.domain.blocker import Kind, job_key, words


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_of_blocker_has_its_own_description(kind: Kind) -> None:
    key = f"{job_key('default', 'shop', 'send')}/shop/extract"
    others = [words(other, key) for other in Kind if other is not kind]
    assert words(kind, key) not in others
    assert words(Kind.LIMIT, "mail") == "a free place under limit mail"


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [("", "the end of"), ("/success", "a success of"), ("/failed", "a failure of"), ("/done", "the end of")],
)
def test_a_dependency_says_which_end_counts(outcome: str, expected: str) -> None:
    # The name of a job may be that of an outcome.
    assert words(Kind.DEPENDENCY, f"default/shop/load/shop/failed{outcome}") == f"{expected} job shop.failed"
