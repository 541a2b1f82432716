"""A log is stored in chunks, which its readers do not see."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain.note import Line
from rota.domain.outcome import GivenBack
from rota.domain.status import Reason
from rota.ops import notes as writing
from rota.store import notes
from rota.store.port import View
from tests.notes.telling import cut, lines, some_lines, write, write_apart
from tests.support.tables import table
from tests.support.world import NAMESPACE, World

STREAMS = ("stdout", "stderr", "log")


def mixed(id: str, fence: int, count: int) -> list[Line]:
    """Lines of all streams in turns, one of a hundred of our own."""
    return [
        Line(id, fence, number, 1000, "rota" if number % 100 == 50 else STREAMS[number % 3], f"{fence}.{number}")
        for number in range(1, count + 1)
    ]


@pytest.fixture
def told(world: World) -> list[Line]:
    """Three attempts: one in long chunks, one in chunks of one line each, one with a gap."""
    worker, attempt = world.start()
    written = mixed(attempt.id, 1, 2300)
    write(world, written)
    world.finish(attempt, GivenBack(Reason.DRAINED))
    (attempt,) = world.claim(worker)
    apart = mixed(attempt.id, 2, 150)
    write_apart(world, apart)
    world.finish(attempt, GivenBack(Reason.DRAINED))
    (attempt,) = world.claim(worker)
    gap = [line for line in mixed(attempt.id, 3, 400) if not 100 < line.number < 300]
    write(world, gap[150:])
    write(world, gap[:150])
    return written + apart + gap


def test_writing_the_same_chunks_again_doubles_no_line(world: World) -> None:
    _, attempt = world.start()
    some = cut(mixed(attempt.id, attempt.fence, 1500))
    assert len(some) == 2
    for again in (some, some[1:], some[:1], some):
        world.store.transact(writing.write, again, [])
    assert lines(world, attempt.id, most=10_000) == mixed(attempt.id, attempt.fence, 1500)
    assert sum(piece["last"] - piece["first"] + 1 for piece in table(world.store, "log")) == 1500


@pytest.mark.parametrize("attempt", [None, 1, 2, 3])
@pytest.mark.parametrize("stream", [None, "stderr", "rota"])
def test_pages_span_chunks_and_attempts(
    world: World, told: list[Line], stream: str | None, attempt: int | None
) -> None:
    wanted = [line for line in told if stream in (None, line.stream) and attempt in (None, line.fence)]
    for most in (7, 333, 1000, 5000):
        found: list[Line] = []
        after = notes.START
        while page := lines(world, told[0].id, after=after, most=most, stream=stream, attempt=attempt):
            found += page
            assert len(page) == most or found == wanted
            after = (page[-1].fence, page[-1].number)
        assert found == wanted


@pytest.mark.parametrize("attempt", [None, 1, 2, 3])
@pytest.mark.parametrize("stream", [None, "stderr", "rota"])
def test_the_last_lines_may_start_inside_a_chunk(
    world: World, told: list[Line], stream: str | None, attempt: int | None
) -> None:
    wanted = [line for line in told if stream in (None, line.stream) and attempt in (None, line.fence)]
    for count in (1, 2, 150, 203, 999, len(wanted) - 1, len(wanted), len(wanted) + 1):
        place = world.store.read(notes.before_last, NAMESPACE, told[0].id, count, attempt, stream)
        found = lines(world, told[0].id, after=place, most=10_000, stream=stream, attempt=attempt)
        assert found == wanted[-count:]


def test_a_page_may_start_in_a_gap_or_behind_the_end(world: World, told: list[Line]) -> None:
    id = told[0].id
    assert [line.number for line in lines(world, id, after=(3, 200), most=2)] == [300, 301]
    assert lines(world, id, after=(3, 400)) == []
    assert lines(world, id, after=(1, 10**6), most=1) == [told[2300]]


class Watched:
    """A view that counts what is read through it."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.counts: list[int] = []

    def records(self, name: str, kind: type[Any], /, **params: Any) -> list[Any]:
        found = self._view.records(name, kind, **params)
        self.counts.append(len(found))
        return found


def test_only_a_few_chunks_are_read_at_a_time(world: World, told: list[Line]) -> None:
    def read(view: View, most: int) -> tuple[int, list[int]]:
        watched = Watched(view)
        return len(notes.lines(watched, NAMESPACE, told[0].id, most=most)), watched.counts  # type: ignore[arg-type]

    assert world.store.read(read, 10) == (10, [4])
    assert world.store.read(read, 10_000) == (len(told), [4, 8, 16, 32, 64, 32])


def test_one_line_in_many_chunks_is_found(world: World) -> None:
    _, attempt = world.start()
    written = some_lines(attempt, 500)
    write_apart(world, written)
    write(world, some_lines(attempt, 1, 501, "stderr"))
    (found,) = lines(world, attempt.id, stream="stderr")
    assert found.number == 501
    assert world.store.read(notes.before_last, NAMESPACE, attempt.id, 1, None, "stderr") == notes.START
    assert world.store.read(notes.before_last, NAMESPACE, attempt.id, 400, None, None) == (1, 101)
