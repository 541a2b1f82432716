"""Progress and checkpoints: the last report counts, and only that of the running attempt."""

from __future__ import annotations

import msgspec
import pytest

from rota.domain.note import State
from rota.domain.outcome import GivenBack, Succeeded
from rota.domain.status import Reason, Status
from rota.ops import fleet
from rota.ops import notes as writing
from rota.store import notes
from rota.store.port import Store
from tests.notes.telling import cut, lines, some_lines, tell, told, write
from tests.support.world import NAMESPACE, Boom, World, boom_after


def checkpoints(store: Store, *ids: str) -> dict[str, str]:
    return {id: kept.checkpoint for id, kept in store.read(writing.kept, ids).items() if kept.checkpoint}


def test_a_reported_state_can_be_read(world: World) -> None:
    _, attempt = world.start()
    assert told(world, attempt.id) is None
    state = State(attempt.id, attempt.fence, 5, 1.5, 10.0, "half-way “there”", '{"row":3}')
    assert write(world, states=[state]) == []
    assert world.store.read(notes.state, NAMESPACE, attempt.id) == state


def test_fields_that_are_not_reported_are_kept(world: World) -> None:
    _, attempt = world.start()
    tell(world, attempt, done=1, total=10, note="begun")
    tell(world, attempt, done=2)
    assert told(world, attempt.id) == (2, 10, "begun", None)
    tell(world, attempt, checkpoint="[1]")
    assert told(world, attempt.id) == (2, 10, "begun", "[1]")
    world.clock.advance(1)
    tell(world, attempt)
    state = world.store.read(notes.state, NAMESPACE, attempt.id)
    assert state == State(attempt.id, attempt.fence, world.clock.now(), 2, 10, "begun", "[1]")


def test_zero_empty_and_null_values_are_stored(world: World) -> None:
    _, attempt = world.start()
    tell(world, attempt, done=5, note="five", checkpoint="1")
    tell(world, attempt, done=0, note="", checkpoint="null")
    assert told(world, attempt.id) == (0, None, "", "null")


def test_states_of_one_attempt_in_a_batch_are_applied_in_order(world: World) -> None:
    _, attempt = world.start()
    states = [
        State(attempt.id, attempt.fence, 1, done=1, total=3, checkpoint="1"),
        State(attempt.id, attempt.fence, 2, done=2, note="two"),
        State(attempt.id, attempt.fence, 3, done=3),
    ]
    assert write(world, states=states) == []
    assert world.store.read(notes.state, NAMESPACE, attempt.id) == State(attempt.id, attempt.fence, 3, 3, 3, "two", "1")


def test_a_later_attempt_resets_the_progress_and_keeps_the_checkpoint(world: World) -> None:
    worker, first = world.start()
    tell(world, first, done=7, total=10, note="far", checkpoint='{"row":7}')
    world.finish(first, GivenBack(Reason.DRAINED))
    assert told(world, first.id) == (7, 10, "far", '{"row":7}'), "until the next attempt says something"
    (second,) = world.claim(worker)
    assert checkpoints(world.store, first.id) == {first.id: '{"row":7}'}
    tell(world, second, total=20)
    assert told(world, first.id) == (None, 20, None, '{"row":7}')
    tell(world, second, checkpoint='{"row":8}')
    assert told(world, first.id) == (None, 20, None, '{"row":8}')


def test_a_stale_state_changes_nothing_and_is_returned_as_stale(world: World) -> None:
    worker, old = world.start()
    tell(world, old, done=1, checkpoint="1")
    world.store.transact(fleet.declare_dead, worker, "gone")
    assert tell(world, old, done=2, checkpoint="2") == [old.id], "before it is claimed again"
    (new,) = world.claim(world.join())
    assert tell(world, old, done=3) == [old.id]
    assert tell(world, msgspec.structs.replace(new, fence=new.fence + 1), done=4) == [old.id]
    assert told(world, old.id) == (1, None, None, "1")
    world.finish(new, Succeeded("1"))
    assert tell(world, new, done=5) == [new.id]
    assert told(world, old.id) == (1, None, None, "1")


def test_only_the_stale_states_of_a_batch_are_refused(world: World) -> None:
    world.enqueue_many(4)
    claims = world.claim(world.join())
    world.finish(claims[1])
    unknown = msgspec.structs.replace(claims[0], id=world.ids.new())
    states = [State(one.id, one.fence, 1, done=1) for one in (*claims, unknown)]
    forged = State(claims[2].id, claims[2].fence + 1, 1, done=9, checkpoint="9")
    stale = write(world, states=[*states, forged])
    assert sorted(stale) == sorted([claims[1].id, claims[2].id, unknown.id])
    assert [told(world, one.id) for one in claims] == [
        (1, None, None, None),
        None,
        (1, None, None, None),
        (1, None, None, None),
    ]


def test_lines_and_states_are_written_together_or_not_at_all(world: World) -> None:
    _, attempt = world.start()
    states = [State(attempt.id, attempt.fence, 1, done=1)]
    with pytest.raises(Boom):
        world.store.transact(boom_after, writing.write, cut(some_lines(attempt, 2)), states)
    assert (lines(world, attempt.id), told(world, attempt.id)) == ([], None)
    assert write(world, some_lines(attempt, 2), states) == []
    assert write(world, some_lines(attempt, 2), states) == [], "a write may be repeated"
    assert (len(lines(world, attempt.id)), told(world, attempt.id)) == (2, (1, None, None, None))


def test_only_executions_with_a_checkpoint_are_returned(world: World) -> None:
    world.enqueue_many(3)
    one, two, three = world.claim(world.join())
    tell(world, one, checkpoint='"a"')
    tell(world, two, done=1)
    assert checkpoints(world.store, one.id, two.id, three.id, world.ids.new()) == {one.id: '"a"'}
    assert checkpoints(world.store) == {}
    assert world.store.transact(writing.kept, [one.id])[one.id].checkpoint == '"a"'


def test_the_state_of_an_execution_of_another_namespace_is_not_visible(world: World) -> None:
    _, attempt = world.start()
    tell(world, attempt, done=1)
    for namespace, id in (("other", attempt.id), (NAMESPACE, world.ids.new()), (NAMESPACE, "no id")):
        assert world.store.read(notes.state, namespace, id) is None


def test_status_and_attempt_show_whether_more_lines_can_follow(world: World) -> None:
    id = world.enqueue()
    assert world.store.read(notes.progress, NAMESPACE, id) == (Status.QUEUED, 0)
    (attempt,) = world.claim(world.join())
    assert world.store.read(notes.progress, NAMESPACE, id) == (Status.RUNNING, 1)
    world.finish(attempt)
    assert world.store.read(notes.progress, NAMESPACE, id) == (Status.SUCCESS, 1)
