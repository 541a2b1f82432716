"""The page about faults names tests that there are, and every test of the four groups that it is made of."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import REPOSITORY, pages

PAGE = "docs/reliability.md"
_NAMED = re.compile(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")
_DEFINED = re.compile(r"^(?:async )?def (test_\w+)\(", re.MULTILINE)
GROUPS = [f"tests/faults/test_{group}.py" for group in ("process_death", "pauses", "content", "os")]


def defined(path: str) -> set[str]:
    return set(_DEFINED.findall((REPOSITORY / path).read_text("utf-8")))


def test_every_test_that_is_named_exists() -> None:
    named = _NAMED.findall(pages()[PAGE])
    assert len(named) > 60
    assert [(name, path) for name, path in named if name not in defined(path)] == []


@pytest.mark.parametrize("path", GROUPS)
def test_every_fault_with_a_test_of_its_name_is_on_the_page(path: str) -> None:
    assert defined(path) - {name for name, where in _NAMED.findall(pages()[PAGE]) if where == path} == set()
