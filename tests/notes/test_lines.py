"""Lines of logs: kept in their order, once, by attempt."""

from __future__ import annotations

import msgspec

from rota.domain.note import Line
from rota.domain.outcome import GivenBack
from rota.domain.status import Reason
from rota.ops import fleet
from rota.store import notes
from tests.notes.telling import lines, some_lines, write
from tests.support.world import NAMESPACE, World

ODD = ["", " ", 'a "quoted" \\ word', "{1,2}", "NULL", "Grüße 🎉", "\x1b[31mred\x1b[0m", "tab\there", "x" * 100_000]


def test_lines_are_read_back_unchanged_and_in_order(world: World) -> None:
    _, attempt = world.start()
    written = some_lines(attempt, 5)
    assert write(world, written[3:]) == []
    assert write(world, written[:3]) == []
    assert lines(world, attempt.id) == written


def test_every_text_is_stored_unchanged(world: World) -> None:
    _, attempt = world.start()
    written = [Line(attempt.id, attempt.fence, n, n, "log", text) for n, text in enumerate(ODD, start=1)]
    write(world, written)
    assert lines(world, attempt.id) == written


def test_a_line_that_is_written_again_is_not_changed(world: World) -> None:
    _, attempt = world.start()
    written = some_lines(attempt, 4)
    write(world, written[:3])
    write(world, [msgspec.structs.replace(line, text="other") for line in written[:3]] + written[3:])
    assert lines(world, attempt.id) == written


def test_lines_of_many_executions_in_one_write_are_not_mixed(world: World) -> None:
    ids = world.enqueue_many(10)
    claims = world.claim(world.join())
    written = {attempt.id: some_lines(attempt, 3) for attempt in claims}
    write(world, [line for number in range(3) for group in written.values() for line in group[number : number + 1]])
    assert {id: lines(world, id) for id in ids} == written


def test_a_page_starts_after_the_last_line_of_the_previous_one(world: World) -> None:
    _, attempt = world.start()
    written = some_lines(attempt, 7)
    write(world, written)
    found: list[Line] = []
    while page := lines(world, attempt.id, after=(found[-1].fence, found[-1].number) if found else (0, 0), most=3):
        assert len(page) <= 3
        found += page
    assert found == written


def test_lines_of_a_later_attempt_follow_those_of_the_earlier_one(world: World) -> None:
    worker, first = world.start()
    old = some_lines(first, 12)
    world.finish(first, GivenBack(Reason.DRAINED))
    (second,) = world.claim(worker)
    new = some_lines(second, 2, stream="stderr")
    write(world, new)
    assert write(world, old) == [], "an attempt that is over may still have lines on their way"
    assert lines(world, first.id) == old + new
    assert lines(world, first.id, attempt=second.fence) == new
    assert lines(world, first.id, attempt=9) == []
    assert lines(world, first.id, stream="stderr") == new
    assert lines(world, first.id, after=(first.fence, 11), most=2) == [old[11], new[0]]


def test_the_last_lines_after_a_position_are_read(world: World) -> None:
    _, attempt = world.start()
    write(world, some_lines(attempt, 5) + some_lines(attempt, 5, 6, "stderr"))

    def last(count: int, **wanted: str) -> list[int]:
        place = world.store.read(notes.before_last, NAMESPACE, attempt.id, count, None, wanted.get("stream"))
        return [line.number for line in lines(world, attempt.id, after=place, **wanted)]

    assert last(3) == [8, 9, 10]
    assert last(2, stream="stdout") == [4, 5]
    assert last(10) == last(11) == list(range(1, 11))


def test_lines_stay_when_the_execution_has_ended(world: World) -> None:
    worker, attempt = world.start()
    written = some_lines(attempt, 2)
    write(world, written[:1])
    world.finish(attempt)
    world.store.transact(fleet.leave, worker)
    write(world, written[1:])
    assert lines(world, attempt.id) == written


def test_an_execution_of_another_namespace_has_no_lines(world: World) -> None:
    _, attempt = world.start()
    write(world, some_lines(attempt, 2))
    for namespace, id in (("other", attempt.id), (NAMESPACE, world.ids.new()), (NAMESPACE, "no id")):
        assert world.store.read(notes.lines, namespace, id) == []
        assert world.store.read(notes.before_last, namespace, id, 1) == (0, 0)


def test_many_lines_are_written_at_once(world: World) -> None:
    _, attempt = world.start()
    written = some_lines(attempt, 5000)
    write(world, written)
    assert lines(world, attempt.id, most=10_000) == written
    assert len(lines(world, attempt.id)) == 1000
