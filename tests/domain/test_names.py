"""Names of apps, jobs, queues and so on."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain import names
from rota.domain.errors import DefinitionError

FIRST = string.ascii_letters + "_"
good = st.builds("".join, st.tuples(st.sampled_from(FIRST), st.text(FIRST + string.digits + ".:-", max_size=127)))


@given(good)
def test_a_name_has_letters_digits_and_a_few_marks(name: str) -> None:
    assert names.check(name, "a queue's name") == name


@given(st.text(max_size=200))
def test_any_text_is_a_name_or_is_refused_with_a_clear_error(text: str) -> None:
    refusal = ""
    try:
        assert names.check(text, "a queue's name") == text
    except DefinitionError as error:
        refusal = str(error)
    assert refusal == "" or refusal.startswith("a queue's name must start with a letter")
    assert len(refusal) < 500


@pytest.mark.parametrize(
    "name",
    [
        "",
        "1st",
        "-x",
        "a b",
        "a\n",
        "mail\x00",
        "Käse",
        "a/b",
        "../x",
        "a;b",
        "\ud800",
        "x" * 129,
        "<script>",
        None,
        5,
        b"x",
    ],
)
def test_other_names_are_refused(name: Any) -> None:
    with pytest.raises(DefinitionError, match="must start with a letter"):
        names.check(name, "a job's name")
