"""Durations as people write them."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.duration import LONGEST_S, positive_seconds, seconds, words, written
from rota.domain.errors import DefinitionError

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@given(st.floats(min_value=0, max_value=LONGEST_S))
def test_a_number_is_seconds(value: float) -> None:
    assert seconds(value) == value


@given(st.integers(min_value=0, max_value=1000), st.sampled_from(sorted(UNITS)))
def test_a_number_with_a_unit_is_that_many_of_it(number: int, unit: str) -> None:
    assert seconds(f"{number}{unit}") == pytest.approx(number * UNITS[unit])


@given(
    st.lists(st.tuples(st.integers(min_value=0, max_value=99), st.sampled_from(sorted(UNITS))), min_size=1, max_size=6)
)
def test_parts_add_up(parts: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{unit}" for number, unit in parts)
    assert seconds(text) == pytest.approx(sum(number * UNITS[unit] for number, unit in parts))


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=36_000)))
def test_a_timedelta_is_itself(value: timedelta) -> None:
    assert seconds(value) == value.total_seconds()


@given(st.integers(min_value=60, max_value=int(LONGEST_S)))
def test_a_duration_in_words_parses_to_about_the_same_duration(value_s: int) -> None:
    read = seconds(written(value_s))
    assert read <= value_s
    assert value_s - read < max(60, value_s / 24)


@pytest.mark.parametrize(
    ("value_s", "text", "code"),
    [
        (0.25, "250 ms", "250ms"),
        (1.5, "1.5 s", "1.5s"),
        (42, "42 s", "42s"),
        (65, "1 m 05 s", "1m5s"),
        (3600, "1 h", "1h"),
        (90_000, "1 d 01 h", "1d1h"),
        (30 * 86_400 + 3600, "30 d", "30d1h"),
    ],
)
def test_words_use_the_two_largest_units(value_s: float, text: str, code: str) -> None:
    assert (words(value_s), written(value_s)) == (text, code)


@given(st.text(max_size=200))
def test_any_text_is_a_duration_or_is_refused(text: str) -> None:
    try:
        value = seconds(text)
    except DefinitionError:
        return
    assert re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h|d|w))+", text.strip())
    assert 0 <= value <= LONGEST_S


JUNK: list[Any] = [
    "",
    " ",
    "s",
    "5",
    "5x",
    "-5s",
    "5s-",
    "1e5s",
    "5 s",
    "1h 30m",
    "5.s",
    ".5s",
    "NaN",
    "inf",
    "5s\x00",
    "١0s",
    "9" * 70 + "s",
    "9" * 60 + "w",
    "1s" * 100,
    "1" * 1000000,
    "1s" * 500000 + "x",
    -1,
    -0.001,
    math.nan,
    math.inf,
    -math.inf,
    LONGEST_S * 2,
    10**400,
    10**5000,
    True,
    False,
    None,
    [],
    b"5s",
    {},
    timedelta(seconds=-1),
    timedelta.max,
]


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_an_invalid_duration_is_refused_and_the_error_shows_valid_ones(junk: Any) -> None:
    with pytest.raises(DefinitionError, match="delay must be"):
        seconds(junk, "delay")


@pytest.mark.parametrize("zero", [0, 0.0, "0s", "0ms", timedelta(0)])
def test_zero_is_refused_where_a_positive_duration_is_needed(zero: Any) -> None:
    assert seconds(zero) == 0
    with pytest.raises(DefinitionError, match="longer than zero"):
        positive_seconds(zero, "timeout")
