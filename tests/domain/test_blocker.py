"""What executions wait for, in words."""

from __future__ import annotations

import pytest

from rota.domain.blocker import Kind, job_key, words


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_of_blocker_has_its_own_description(kind: Kind) -> None:
    key = job_key("default", "shop", "send")
    others = [words(other, key) for other in Kind if other is not kind]
    assert words(kind, key) not in others
    assert words(Kind.LIMIT, "mail") == "a free place under limit mail"
