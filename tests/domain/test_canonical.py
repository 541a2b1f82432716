"""JSON in the one form that Python and PostgreSQL agree on. That they agree is shown in tests/transaction."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain import payload

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e15, 1e15) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"bb":1,"a":2,"ab":3}', '{"a": 2, "ab": 3, "bb": 1}'),
        ('{"é":1,"zz":2,"z":3}', '{"z": 3, "zz": 2, "é": 1}'),
        ("[1.50, 1e22, 1E-7, -0.0, -0]", "[1.50, 10000000000000000000000, 0.0000001, 0.0, 0]"),
        ('["\\/\\u0001\\n\\u00e9\\"", true, null]', '["/\\u0001\\né\\"", true, null]'),
        ('{"a":1,"a":2}', '{"a": 2}'),
        ("[" + "9" * 5000 + "]", "[" + "9" * 5000 + "]"),
        ("1e99999", "1e99999"),
    ],
)
def test_a_value_has_one_form(text: str, expected: str) -> None:
    assert payload.canonical(text) == expected


@given(VALUES)
def test_the_form_is_the_same_value_in_json(value: object) -> None:
    assert json.loads(payload.canonical(json.dumps(value))) == value


@given(st.dictionaries(st.text(), st.integers()))
def test_the_order_of_names_does_not_count(value: dict[str, int]) -> None:
    backwards = dict(reversed(value.items()))
    assert payload.canonical(json.dumps(value)) == payload.canonical(json.dumps(backwards))
