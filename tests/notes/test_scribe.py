"""The scribe: lines of attempts are written once and in order, even if the database fails meanwhile."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from rota.domain.errors import StoreUnavailable
from rota.domain.note import Line, State
from rota.engine import scribe as scribes
from rota.engine.async_store import WorkerCalls
from rota.engine.scribe import Scribe
from rota.store.port import Store
from tests.notes.telling import lines, told
from tests.support.world import World


class Fickle:
    """A way to the store on which calls or their answers are lost, as `fate` says: one word for each call."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.fate: deque[str] = deque()
        self.calls: list[int] = []

    async def transact(self, op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        fate = self.fate.popleft() if self.fate else "fine"
        self.calls.append(len(args[0]))
        if fate == "refused":
            raise ValueError("cannot be written")
        if fate == "away":
            raise StoreUnavailable("away")
        answer = self._store.transact(op, *args, **kwargs)
        if fate == "unanswered":
            raise StoreUnavailable("no answer")
        return answer

    async def timed(self, op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await self.transact(op, *args, **kwargs), 0.0

    async def read(self, query: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._store.read(query, *args, **kwargs)


class Plain:
    """What is to be kept of one attempt's log, told in the plainest way: line by line."""

    def __init__(self, head_bytes: int) -> None:
        self.head_bytes = head_bytes
        self.is_full = False
        self.head: list[tuple[int, str, str]] = []
        self.tail: deque[tuple[int, str, str]] = deque()
        self.size = self.count = self.left_out = 0

    def line(self, stream: str, text: str) -> None:
        self.count += 1
        self.size += len(text) + 1 + scribes.LINE_BYTES
        if self.size <= self.head_bytes:
            self.head.append((self.count, stream, text))
            return
        if not self.is_full:
            self.is_full = True
            self.head.append((self.count, "rota", scribes.FULL))
            self.count += 1
        self.tail.append((self.count, stream, text))
        while sum(len(text) + 1 for _, _, text in self.tail) > scribes.TAIL_BYTES:
            self.tail.popleft()
            self.left_out += 1

    def kept(self) -> list[tuple[int, str, str]]:
        words = f"({self.left_out:,} lines are left out here)"
        gap = [(self.tail[0][0] - 1, "rota", words)] if self.left_out else []
        return [*self.head, *gap, *self.tail]


def said(found: list[Line]) -> list[tuple[int, str, str]]:
    return [(line.number, line.stream, line.text) for line in found]


@pytest.fixture
def bridge(world: World) -> Fickle:
    return Fickle(world.store)


async def written(scribe: Scribe) -> int:
    """Until there is nothing left; returns how often the store was out of reach."""
    failed = 0
    while not scribe.is_empty:
        try:
            await scribe.step()
        except StoreUnavailable:
            failed += 1
    return failed


async def test_lines_of_one_attempt_in_one_moment_are_one_chunk(world: World, bridge: Fickle) -> None:
    scribe = Scribe(WorkerCalls(bridge, 1, world.served()), world.clock)
    world.enqueue_many(3)
    attempts = world.claim(world.join())
    for number in range(10):
        for one in attempts:
            scribe.line(one.id, one.fence, ("stdout", "log")[number % 2], f"line {number}")
            world.clock.advance(0.01)
    await scribe.flush()
    assert bridge.calls == [3]
    for one in attempts:
        found = lines(world, one.id)
        assert [line.text for line in found] == [f"line {number}" for number in range(10)]
        assert [line.at - found[0].at for line in found] == [number * 30_000 for number in range(10)]


@pytest.mark.parametrize("lost", ["away", "unanswered"])
async def test_no_line_is_lost_or_doubled_after_an_outage(world: World, bridge: Fickle, lost: str) -> None:
    scribe = Scribe(WorkerCalls(bridge, 1, world.served()), world.clock)
    _, attempt = world.start()
    bridge.fate.extend([lost, "fine", lost, lost, "away", lost])
    expected = []
    for number in range(1, 41):
        scribe.lines(attempt.id, attempt.fence, "stdout", [f"{number}", f"{number} again"])
        expected += [f"{number}", f"{number} again"]
        scribe.state(State(attempt.id, attempt.fence, 0, done=number))
        try:
            await scribe.flush()
        except StoreUnavailable:
            # Lines before the next try are another chunk.
            scribe.line(attempt.id, attempt.fence, "stdout", f"after {number}")
            expected.append(f"after {number}")
    scribe.ended(attempt.id, attempt.fence)
    assert await written(scribe) == 0
    found = lines(world, attempt.id)
    assert [line.text for line in found] == expected
    assert [line.number for line in found] == list(range(1, len(expected) + 1))
    assert told(world, attempt.id) == (40, None, None, None)


async def test_a_repeated_write_is_identical(world: World, bridge: Fickle) -> None:
    scribe = Scribe(WorkerCalls(bridge, 1, world.served()), world.clock)
    _, attempt = world.start()
    scribe.lines(attempt.id, attempt.fence, "stdout", [str(number) for number in range(2500)])
    bridge.fate.extend(["unanswered", "unanswered"])
    assert await written(scribe) == 2
    scribe.line(attempt.id, attempt.fence, "stdout", "2500")
    assert await written(scribe) == 0
    assert [line.text for line in lines(world, attempt.id, most=9999)] == [str(number) for number in range(2501)]


async def test_a_line_that_can_never_be_written_does_not_block_others(world: World, bridge: Fickle) -> None:
    scribe = Scribe(WorkerCalls(bridge, 1, world.served()), world.clock)
    world.enqueue_many(2)
    one, two = world.claim(world.join())
    scribe.line(one.id, one.fence, "stdout", "lost")
    bridge.fate.append("refused")
    await scribe.flush()
    scribe.line(one.id, one.fence, object(), "no such stream")  # type: ignore[arg-type]
    scribe.line(two.id, two.fence, "stdout", "kept")
    assert await written(scribe) == 0
    scribe.line(one.id, one.fence, "stdout", "continues")
    assert await written(scribe) == 0
    assert [line.text for line in lines(world, one.id)] == ["continues"]
    assert [line.text for line in lines(world, two.id)] == ["kept"]


async def test_lines_after_the_end_of_an_attempt_use_no_room_of_others(
    world: World, bridge: Fickle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scribes, "MOST_ENDED", 2)
    scribe = Scribe(WorkerCalls(bridge, 1, world.served()), world.clock)
    world.enqueue_many(4)
    attempts = world.claim(world.join())
    for one in attempts:
        scribe.lines(one.id, one.fence, "stdout", ["first", "second"])
        scribe.ended(one.id, one.fence)
        scribe.line(one.id, one.fence, "stdout", "late")
        scribe.lines(one.id, one.fence, "stdout", ["late", "too late"])
        scribe.ended(one.id, one.fence)
    assert await written(scribe) == 0
    assert (len(scribe._logs), len(scribe._ended)) == (0, 2)
    assert [[line.text for line in lines(world, one.id)] for one in attempts] == [["first", "second"]] * 4


@pytest.mark.parametrize("seed", range(8))
async def test_the_first_and_the_last_lines_of_a_long_log_are_kept(
    world: World, bridge: Fickle, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(scribes, "TAIL_BYTES", 2000)
    scribe, plain = Scribe(WorkerCalls(bridge, 1, world.served()), world.clock, 7000), Plain(5000)
    _, attempt = world.start()
    for _ in range(chance.choice([5, 60, 200])):
        stream = chance.choice(["stdout", "stderr"])
        texts = ["x" * chance.choice([0, 1, 30, 300]) for _ in range(chance.choice([1, 1, 1, 5, 40]))]
        for text in texts:
            plain.line(stream, text)
        if len(texts) == 1:
            scribe.line(attempt.id, attempt.fence, stream, texts[0])
        else:
            scribe.lines(attempt.id, attempt.fence, stream, texts)
        world.clock.advance(chance.choice([0, 0.0001, 0.5]))
        if chance.random() < 0.1:
            await scribe.flush()
    scribe.ended(attempt.id, attempt.fence)
    await written(scribe)
    assert said(lines(world, attempt.id, most=100_000)) == plain.kept()


async def test_the_tail_of_a_log_uses_all_the_room_that_is_left(
    world: World, bridge: Fickle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scribes, "TAIL_BYTES", 2000)
    scribe = Scribe(WorkerCalls(bridge, 1, world.served()), world.clock, 2000 + 10 * (10 + scribes.LINE_BYTES))
    _, attempt = world.start()
    for number in range(1000):
        scribe.line(attempt.id, attempt.fence, "stdout", f"line {number:04}")
        world.clock.advance(1)
    scribe.ended(attempt.id, attempt.fence)
    await written(scribe)
    found = lines(world, attempt.id)
    assert [line.number for line in found] == [*range(1, 12), *range(801, 1002)]
    assert (found[10].text, found[11].text) == (scribes.FULL, "(790 lines are left out here)")


async def test_lines_of_the_tail_keep_their_times(
    world: World, bridge: Fickle, monkeypatch: pytest.MonkeyPatch
) -> None:
    scribe = Scribe(WorkerCalls(bridge, 1, world.served()), world.clock, scribes.TAIL_BYTES)
    _, attempt = world.start()
    began = world.clock.now()
    for number in range(10):
        scribe.line(attempt.id, attempt.fence, "stdout", f"line {number}")
        world.clock.advance(1)
    world.clock.advance(60)
    scribe.ended(attempt.id, attempt.fence)
    await written(scribe)
    assert [line.at - began for line in lines(world, attempt.id)[1:]] == [number * 1_000_000 for number in range(10)]


async def test_a_limited_amount_is_kept_while_the_database_is_unavailable(
    world: World, bridge: Fickle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scribes, "MOST_WAITING_BYTES", 5000)
    monkeypatch.setattr(scribes, "TAIL_BYTES", 1000)
    scribe = Scribe(WorkerCalls(bridge, 1, world.served()), world.clock)
    _, attempt = world.start()
    bridge.fate.extend(["away"] * 20)
    text = "y" * 99
    for number in range(2000):
        scribe.line(attempt.id, attempt.fence, "stdout", text)
        if number % 100 == 0 and bridge.fate:
            with pytest.raises(StoreUnavailable):
                await scribe.flush()
        assert scribe._waiting_bytes < 8000
    assert await written(scribe) == 0
    scribe.line(attempt.id, attempt.fence, "stdout", "there again")
    scribe.ended(attempt.id, attempt.fence)
    await written(scribe)
    found = lines(world, attempt.id, most=10_000)
    numbers = [line.number for line in found]
    assert numbers == sorted(set(numbers))
    assert found[-1].text == "there again"
    (gap,) = [line for line in found if line.stream == "rota"]
    assert gap.text == f"({2001 - (len(found) - 1):,} lines are left out here)"
    assert scribe._waiting_bytes == 0
