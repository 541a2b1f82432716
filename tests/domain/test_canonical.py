"""JSON in the one form that Python and PostgreSQL agree on. That they agree is shown in tests/transaction."""

from __future__ import annotations

import hashlib
import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain import payload
from tests.support.canonical import canonical

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
def test_equal_values_have_one_canonical_form(text: str, expected: str) -> None:
    assert canonical(text) == expected


@given(VALUES)
def test_the_canonical_form_is_the_same_json_value_and_its_digest_is_the_digest(value: object) -> None:
    text = json.dumps(value)
    assert json.loads(canonical(text)) == value
    assert payload.digest(text) == hashlib.sha256(canonical(text).encode()).hexdigest()


@pytest.mark.parametrize("number", ["5e-324", "1e308", "1e-15999"])
def test_a_digest_does_not_depend_on_the_notation_of_numbers(number: str) -> None:
    text = f"[{','.join([number] * 5_000)}]"
    tracemalloc.start()
    try:
        payload.digest(text)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@given(st.dictionaries(st.text(), st.integers()))
def test_the_order_of_names_does_not_change_the_digest(value: dict[str, int]) -> None:
    backwards = dict(reversed(value.items()))
    assert canonical(json.dumps(value)) == canonical(json.dumps(backwards))
