"""Log lines are stored in chunks, and read back unchanged."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from rota.domain.note import MOST_CHARACTERS, MOST_LINES, Line, Run, expanded, pieces, size_of
from tests.notes.telling import cut

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
streams = st.sampled_from(["stdout", "stderr", "log", "rota"])
said = st.tuples(st.integers(1, 3), st.integers(0, 2), streams, texts | st.just("long " * 5000), st.integers(1, 500))


def lines_of(told: list[tuple[int, int, str, str, int]]) -> list[Line]:
    """Lines with some gaps in their numbers; each is repeated `times` times, up to a few megabytes in total."""
    found: list[Line] = []
    number, room = 0, 2_000_000
    for step, at, stream, text, times in told:
        number += step - 1
        for _ in range(min(times, 1 + room // (len(text) + 1))):
            number += 1
            room -= len(text) + 1
            found.append(Line("x", 1, number, at, stream, text))
    return found


@given(st.lists(said, max_size=12))
@example([(1, 0, "stdout", "", 500)] * 5)
@example([(1, 0, "stdout", "x" * 100_000, 2), (1, 0, "stdout", "y", 1)])
def test_chunks_contain_the_lines_that_they_were_made_of(told: list[tuple[int, int, str, str, int]]) -> None:
    lines = lines_of(told)
    found = cut(lines)
    assert [line for piece in found for line in expanded(piece)] == lines
    for piece in found:
        inside = expanded(piece)
        assert [line.number for line in inside] == list(range(piece.first, piece.last + 1))
        assert len(inside) == 1 or size_of([line.text for line in inside]) <= MOST_CHARACTERS
        assert len(inside) <= MOST_LINES


def test_lines_of_one_moment_are_one_chunk() -> None:
    runs = [Run(1, 5, "stdout", ["a", "b"], 4), Run(3, 6, "log", ["c"], 2), Run(4, 6, "stdout", ["d"], 2)]
    (piece,) = pieces("x", 2, runs)
    assert (piece.id, piece.fence, piece.first, piece.last) == ("x", 2, 1, 4)
    assert piece.text == '[[5,"stdout",["a","b"]],[6,"log",["c"]],[6,"stdout",["d"]]]'


def test_a_missing_line_number_starts_a_new_chunk() -> None:
    runs = [Run(7, 5, "stdout", ["a"], 2), Run(9, 5, "stdout", ["b"], 2), Run(8, 5, "stdout", ["c"], 2)]
    assert [(piece.first, piece.last) for piece in pieces("x", 1, runs)] == [(7, 7), (9, 9), (8, 8)]


def test_no_lines_are_no_chunk() -> None:
    assert pieces("x", 1, []) == []
