"""A version is its content."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rota.domain.job import Definition, content, digest

definitions = st.builds(
    Definition,
    name=st.sampled_from(["a", "b"]),
    queue=st.sampled_from(["default", "mail"]),
    priority=st.integers(-10, 10),
    timeout_s=st.none() | st.floats(min_value=0.1, max_value=100),
    retry=st.dictionaries(st.sampled_from(["attempts", "delay"]), st.integers(0, 5)),
    parameters=st.dictionaries(st.sampled_from(["to", "subject"]), st.sampled_from(["str", "int"])),
)


@given(definitions, definitions)
def test_two_definitions_are_one_version_if_and_only_if_they_are_equal(one: Definition, other: Definition) -> None:
    assert (digest(content(one)) == digest(content(other))) == (one == other)


def test_the_order_in_which_a_definition_was_written_does_not_matter() -> None:
    one = Definition(name="a", parameters={"x": "int", "y": "str"})
    other = Definition(name="a", parameters={"y": "str", "x": "int"})
    assert content(one) == content(other)
