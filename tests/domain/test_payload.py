"""The validator in front of every database refuses values that cannot be stored or read back."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import signal
import uuid
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rota.domain import payload
from rota.domain.errors import ArgumentsError
from rota.domain.payload import DEEPEST, MOST_MESSAGE, MOST_TRACEBACK, clean, decode, encode

texts = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=30,
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.datetimes() | st.uuids(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=5) | st.integers() | st.floats(), inner, max_size=4)
        | st.frozensets(st.text(max_size=5) | st.floats(), max_size=4)
    ),
    max_leaves=20,
)
every_text = st.text(st.characters(exclude_categories=[]))


class Colour(enum.Enum):
    RED = "red"
    UNDEFINED = math.nan


class Measure(float, enum.Enum):
    UNDEFINED = math.nan


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


class Pair(NamedTuple):
    a: float
    b: str


class Item(msgspec.Struct):
    price: float


def nested(depth: int, innermost: Any = 1) -> Any:
    value = innermost
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


@given(values)
def test_json_is_stored_and_read_back_unchanged(value: Any) -> None:
    assert decode(encode(value, "the result"), "the result") == value


@given(anything)
@example([math.nan])
@example({"a": "\x00"})
@example("\ud800")
@example(10**5000)
def test_every_value_is_either_refused_or_stored_as_valid_json(value: Any) -> None:
    try:
        text = encode(value, "the result")
    except ArgumentsError:
        return
    assert "\\u0000" not in text
    text.encode()
    json.loads(text, parse_constant=pytest.fail)
    decode(text, "the result")


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        1e308 * 10,
        [1, {"a": math.nan}],
        Point(math.nan),
        Item(-math.inf),
        Pair(math.nan, ""),
        Colour.UNDEFINED,
        Measure.UNDEFINED,
        {Measure.UNDEFINED},
        {"x": (1, (2, math.inf))},
    ],
    ids=str,
)
def test_a_number_that_json_cannot_carry_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentsError, match="which JSON cannot carry"):
        encode(value, "the result")


@pytest.mark.parametrize("value", ["a\x00b", ["ok", "\x00"], {"k\x00": 1}, {"a": {"b": "\x00"}}, Pair(1, "\x00")])
def test_a_nul_character_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentsError, match="NUL"):
        encode(value, "the result")


@pytest.mark.parametrize("value", ["\ud800", ["\udfff"], {"\ud800": 1}, {"a": "\udc80"}])
def test_a_lone_surrogate_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentsError, match="lone surrogate"):
        encode(value, "the result")


@pytest.mark.parametrize(
    "value",
    [object(), 1j, deque([1]), iter([1]), range(3), lambda: 1, {(1, 2): 3}, {None: 1}, type, 10**5000, ValueError("x")],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_not_json_are_refused(value: Any) -> None:
    with pytest.raises(ArgumentsError, match="cannot be stored as JSON"):
        encode(value, "the result")


@pytest.mark.parametrize("raw", [b"not json", b'{"a": NaN}', b"1e400", b"\xff", b'"\xff"', b'"\\ud800"', b"[1", b""])
def test_ready_made_json_is_validated_before_it_is_stored(raw: bytes) -> None:
    with pytest.raises(ArgumentsError, match="cannot be stored as JSON"):
        encode({"a": msgspec.Raw(raw)}, "the result")


def test_valid_ready_made_json_is_stored_unless_it_contains_a_nul() -> None:
    assert decode(encode([msgspec.Raw(b'{"a": null}')], "x"), "x") == [{"a": None}]
    with pytest.raises(ArgumentsError, match="NUL"):
        encode([msgspec.Raw(b'"\\u0000"')], "the result")


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ArgumentsError, match="too deeply or refers to itself"):
        encode(endless, "the result")


@pytest.mark.parametrize("innermost", [1, None, "\\u0000", "null"])
@pytest.mark.parametrize("depth", [DEEPEST + 2, 300, 900, 5_000, 100_000])
def test_deep_nesting_is_refused_when_encoding_and_decoding(depth: int, innermost: Any) -> None:
    with pytest.raises(ArgumentsError, match="nested"):
        encode(nested(depth, innermost), "the result")
    with pytest.raises(ArgumentsError, match="nested"):
        decode("[" * depth + "]" * depth, "the arguments")


@pytest.mark.parametrize("text", [b"[" * 5000 + b"]" * 5000, b"[null", b'{"a": null'], ids=["deep", "list", "object"])
def test_ready_made_json_that_the_caller_would_read_next_is_refused_in_the_same_way(text: bytes) -> None:
    with pytest.raises(ArgumentsError, match="the arguments cannot be stored as JSON"):
        encode(msgspec.Raw(text), "the arguments", is_read_next=True)


def test_the_deepest_allowed_nesting_is_encoded_and_decoded() -> None:
    value = nested(DEEPEST - 1)
    assert decode(encode(value, "x"), "x") == value


def test_wide_values_are_not_deep_ones() -> None:
    value = [[index] for index in range(10 * DEEPEST)]
    assert decode(encode(value, "x"), "x") == value


@pytest.fixture
def cpu_limit() -> Iterator[None]:
    """Ends a test that would compute for minutes; what it checks takes a fraction of a second."""

    def give_up(*_: object) -> None:
        pytest.fail("20 s of processor time are used up")

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, 20.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.usefixtures("cpu_limit")
def test_the_cost_of_a_long_name_does_not_depend_on_the_values_below_it() -> None:
    name = "k" * 4_000_000
    value = {name: [None] * 100_000}
    assert len(encode(value, "x", most_bytes=8_000_000)) > 4_500_000
    value[name].append("\x00")  # type: ignore[arg-type]
    with pytest.raises(ArgumentsError, match=r"the result cannot be stored: a NUL character at \.kkk") as caught:
        encode(value, "the result", most_bytes=8_000_000)
    assert len(str(caught.value)) < 300
    with pytest.raises(ArgumentsError, match=r"the answer cannot be stored: a NUL character at \.kkk") as caught:
        decode(json.dumps(value), "the answer")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [1, {"b": math.nan}]}, "nan at .a[1].b,"),
        ([[1.0, math.inf]], "inf at [0][1],"),
        (math.nan, "nan at the top,"),
        ({"a": {"x\x00": 1}}, "NUL character at .a.x\x00"),
    ],
)
def test_the_error_names_the_place_of_the_refused_value(value: Any, place: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        encode(value, "the result")
    assert place in str(caught.value)


@pytest.mark.parametrize(
    "number",
    ["1e-15999", "-1E-401", "0e-500", "1.5e-0000000401", "0e999999", f"0e{'9' * 5000}", f"1e-{'9' * 5000}"],
    ids=lambda number: number[:12],
)
def test_ready_made_json_with_a_huge_exponent_is_refused(number: str) -> None:
    with pytest.raises(ArgumentsError, match=r"a number in the arguments has an exponent beyond 400"):
        encode({"a": [1, msgspec.Raw(number.encode())]}, "the arguments")


@pytest.mark.parametrize("number", ["5e-324", "1e308", "1e-400", "1e-007", "2.5E+30"])
def test_ready_made_json_with_an_ordinary_exponent_is_stored(number: str) -> None:
    assert encode(msgspec.Raw(number.encode()), "x") == number


def test_a_text_may_look_like_a_number_with_a_huge_exponent() -> None:
    for text in ('"1e-15999"', '{"1e999":"x\\"1e999"}'):
        assert encode(msgspec.Raw(text.encode()), "x") == text


def test_dates_decimals_and_other_values_are_stored_as_their_text() -> None:
    id = uuid.UUID(int=5)
    assert encode(b"\x00\xff", "x") == '"AP8="'
    assert encode(datetime(2026, 1, 1, tzinfo=UTC), "x") == '"2026-01-01T00:00:00Z"'
    assert encode([id, Decimal("1.5"), Colour.RED], "x") == f'["{id}","1.5","red"]'
    assert encode({"p": Point(1, 2), "i": Item(3), "s": {7}}, "x") == '{"p":{"x":1,"y":2},"i":{"price":3},"s":[7]}'


def test_large_whole_numbers_come_back_exactly() -> None:
    for number in (2**53 + 1, 2**64, -(2**70), 10**30):
        assert decode(encode(number, "x"), "x") == number


def test_too_many_bytes_are_refused_naming_both_sizes() -> None:
    assert len(encode("a" * 98, "x", most_bytes=100)) == 100
    with pytest.raises(ArgumentsError, match=r"102 bytes of JSON; at most 100 are stored"):
        encode("a" * 100, "the result", most_bytes=100)
    with pytest.raises(ArgumentsError, match="at most 100"):
        encode("é" * 50, "the result", most_bytes=100)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "[1,]",
        "{'a': 1}",
        "NaN",
        "Infinity",
        "-Infinity",
        "1e400",
        "-1e400",
        "1e100000",
        "\ufeff1",
        "01",
        '"\\ud800"',
        '"\\u0000"',
        '{"\\u0000": 1}',
        '"\x00"',
        "[" * 100000,
        b"\xff",
        b'"\xff"',
        '"\ud800"',
        "1 2",
        "1" * 5000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_bad_json_of_every_kind_is_refused(text: str | bytes) -> None:
    with pytest.raises(ArgumentsError, match="the arguments"):
        decode(text, "the arguments")


@given(every_text, st.integers(min_value=1, max_value=300))
@example("x" * 10_000, 250)
@example("\x00" * 500, 100)
@example("\ud800" * 500, 61)
def test_cleaned_text_can_be_stored_is_bounded_and_stays_as_it_is(text: str, most: int) -> None:
    cleaned = clean(text, most)
    assert len(cleaned) <= most
    assert "\x00" not in cleaned
    cleaned.encode()
    assert clean(cleaned, most) == cleaned


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=MOST_MESSAGE))
def test_text_that_can_be_stored_is_not_changed(text: str) -> None:
    assert clean(text) == text


def test_long_text_keeps_both_ends_and_says_how_much_is_gone() -> None:
    cleaned = clean("start" + "x" * 1_000_000 + "end")
    assert cleaned.startswith("start")
    assert cleaned.endswith("end")
    assert "characters left out" in cleaned


@given(every_text, every_text, every_text)
@example("k" * 1000, "m\x00" * 100_000, "\ud800" * 1_000_000)
def test_an_error_can_always_be_stored(kind: str, message: str, traceback: str) -> None:
    error = payload.error(kind, message, traceback)
    assert len(error.type) <= 200
    assert len(error.message) <= MOST_MESSAGE
    assert len(error.traceback) <= MOST_TRACEBACK
    assert decode(encode(error, "the error"), "the error") == msgspec.to_builtins(error)
