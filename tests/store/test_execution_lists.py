"""Lists of executions with every filter, in both directions, on both databases: compared with a plain look at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.clock import ManualClock
from rota.domain.outcome import Error, Failed
from rota.domain.status import Status
from rota.ids import FIRST_ID, LAST_ID
from rota.store import execution_reader, reader
from rota.store.execution_reader import Criteria, Where
from rota.store.opening import open_store
from rota.store.scan import Budget
from tests.support.databases import fresh_database
from tests.support.world import NAMESPACE, World

Rows = dict[str, reader.ExecutionRow]


@pytest.fixture(scope="module", params=["sqlite", "postgres", "sqlite alone", "postgres alone"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder: Path = tmp_path_factory.mktemp("lists")
    url = f"sqlite:///{folder}/rota.db" if request.param.startswith("sqlite") else fresh_database()
    clock = ManualClock()
    store = open_store(url, clock)
    world = World(store, clock)
    _fill(world, is_alone=request.param.endswith("alone"))
    yield world
    store.close()


def _fill(world: World, *, is_alone: bool) -> None:
    """Sixty executions of three jobs in every state but `waiting`, and as many of another tenant if there is one."""
    if not is_alone:
        world.register("send", namespace="other")
    for number in range(60):
        job = ("send", "receive", "count")[number % 3]
        tags = msgspec.json.encode([f"t{number % 4}", f"u{number % 5}"]).decode() if number % 2 else None
        options: dict[str, Any] = {"tags": tags, "actor": f"a{number % 7}", "queue": f"q{number % 2}"}
        if number % 10 == 9:
            options["delay_s"] = 3600.0
        if number % 15 == 4:
            options["key"] = f"k{number}"
        world.enqueue(job, **options)
        if not is_alone:
            world.enqueue("send", namespace="other", tags=tags, actor="a1")
        world.clock.advance(1)
    worker = world.join()
    for place, attempt in enumerate(world.claim(worker, 40)):
        if place % 4 == 0:
            world.finish(attempt)
        elif place % 4 == 1:
            world.finish(attempt, Failed(Error("ValueError", f'no "luck" {place}', "")))
        elif place % 8 == 2:
            world.finish(attempt, Failed(Error("KeyError", "x", "")))
    queued = world.executions(status=Status.QUEUED)
    for id in queued[:3]:
        world.cancel(id)
    parent = queued[5]
    world.enqueue("send", parent=parent)
    world.enqueue("count", parent=parent, replay_of=queued[6])


@cache
def _all(world: World) -> Rows:
    ids = world.store.read(reader.ids_between, NAMESPACE, FIRST_ID, LAST_ID, 1000)
    return {row.id: row for row in world.store.read(reader.executions_of, NAMESPACE, ids)}


FILTERS: dict[str, tuple[Criteria, Callable[[reader.ExecutionRow], bool]]] = {
    "all": (Criteria(), lambda _: True),
    "job": (Criteria(job=("send",)), lambda row: row.job == "send"),
    "jobs": (Criteria(job=("send", "count")), lambda row: row.job in ("send", "count")),
    "unknown job": (Criteria(job=("nosuch",)), lambda _: False),
    "app and job": (Criteria(job=("shop/send",)), lambda row: row.job == "send"),
    "app": (Criteria(app=("other",)), lambda _: False),
    "queue": (Criteria(queue=("q1",)), lambda row: row.queue == "q1"),
    "tag": (Criteria(tag=("t1",)), lambda row: '"t1"' in (row.tags or "")),
    "tags": (Criteria(tag=("t1", "u3")), lambda row: '"t1"' in (row.tags or "") and '"u3"' in (row.tags or "")),
    "actor": (Criteria(actor=("a1", "a2")), lambda row: row.actor in ("a1", "a2")),
    "key": (Criteria(key=("k4", "k19")), lambda row: row.key in ("k4", "k19")),
    **{
        status.value: (Criteria(status=(status,)), lambda row, status=status: row.status is status)  # type: ignore[misc]
        for status in Status
    },
    "failed or queued": (
        Criteria(status=(Status.FAILED, Status.QUEUED)),
        lambda row: row.status in (Status.FAILED, Status.QUEUED),
    ),
    "failed sends": (
        Criteria(status=(Status.FAILED,), job=("send",)),
        lambda row: row.status is Status.FAILED and row.job == "send",
    ),
    "reason": (Criteria(reason=("retries_exhausted",)), lambda row: row.reason == "retries_exhausted"),
    "error type": (Criteria(error_type=("KeyError",)), lambda row: "KeyError" in (row.error or "")),
    "error": (Criteria(error='NO "LUCK"'), lambda row: "luck" in (row.error or "")),
    "an injection": (Criteria(error="' OR 1=1--"), lambda _: False),
    "dead": (Criteria(dead=True), lambda row: row.status is Status.FAILED),
    "dead of an app": (Criteria(dead=True, job=("none/send",)), lambda _: False),
    "dead in a queue": (
        Criteria(dead=True, queue=("q1",)),
        lambda row: row.status is Status.FAILED and row.queue == "q1",
    ),
    "dead and queued": (Criteria(dead=True, status=(Status.QUEUED,)), lambda _: False),
    "successes in a queue": (
        Criteria(status=(Status.SUCCESS,), queue=("q1",)),
        lambda row: row.status is Status.SUCCESS and row.queue == "q1",
    ),
    "ended": (
        Criteria(status=(Status.SUCCESS, Status.CANCELLED)),
        lambda row: row.status in (Status.SUCCESS, Status.CANCELLED),
    ),
    "dead sends": (Criteria(dead=True, job=("send",)), lambda row: row.status is Status.FAILED and row.job == "send"),
    "not dead": (Criteria(dead=False), lambda row: row.status is not Status.FAILED),
    "worker": (Criteria(worker=("w",)), lambda row: row.worker == "w"),
    "unknown worker": (Criteria(worker=("nosuch",)), lambda _: False),
    "parent": (Criteria(parent=("$parent",)), lambda row: row.parent is not None),
    "replay": (Criteria(replay_of=("$replay",)), lambda row: row.replay_of is not None),
    "no id": (Criteria(run=("nosuch",)), lambda _: False),
}


@pytest.mark.parametrize("few", [True, False], ids=["few", "many"])
@pytest.mark.parametrize("name", FILTERS)
def test_a_list_has_what_matches_and_pages_join_in_both_directions(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str, few: bool
) -> None:
    if not few:
        monkeypatch.setattr(execution_reader, "FEW", 0)
    rows = _all(world)
    wanted, matches = FILTERS[name]
    parent = next(row.parent for row in rows.values() if row.parent)
    replay = next(row.replay_of for row in rows.values() if row.replay_of)
    if wanted.parent or wanted.replay_of:
        wanted = msgspec.structs.replace(
            wanted, parent=(parent,) * bool(wanted.parent), replay_of=(replay,) * bool(wanted.replay_of)
        )
    expected = [id for id, row in rows.items() if matches(row)]
    for is_ascending, whole in ((False, expected), (True, expected[::-1])):
        for budget in (Budget(), Budget(rows=7)):
            assert _paged(world, wanted, is_ascending, budget) == whole


def test_a_page_of_a_namespace_with_very_many_jobs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = list(_all(world))
    monkeypatch.setattr(execution_reader, "MOST_JOBS", 2)
    assert _paged(world, Criteria(), False, Budget()) == expected


@pytest.mark.parametrize("clocks_differ_s", [600, 3])
@pytest.mark.parametrize("status", [(), (Status.FAILED,), (Status.QUEUED, Status.CANCELLED)])
def test_times_are_those_of_the_database(
    world: World, monkeypatch: pytest.MonkeyPatch, clocks_differ_s: int, status: tuple[Status, ...]
) -> None:
    monkeypatch.setattr(execution_reader, "CLOCKS_DIFFER", clocks_differ_s * 10**6)
    rows = _all(world)
    times = sorted(row.created_at for row in rows.values())
    low, high = times[10], times[30]
    found = _paged(world, Criteria(created_from=low, created_to=high, status=status), False, Budget())
    matching = [id for id, row in rows.items() if not status or row.status in status]
    assert found == [id for id in matching if low <= rows[id].created_at < high]


def test_queued_executions_by_rank_are_in_the_order_of_claims(world: World) -> None:
    queued = [row.id for row in _all(world).values() if row.status is Status.QUEUED and row.queue == "q0"]
    found, after = [], None
    while True:
        page = world.store.read(
            execution_reader.page_by_rank, NAMESPACE, "q0", Criteria(), after, 3, Budget(rows=8), back=False
        )
        found += page.keys
        if not page.has_more:
            break
        after = page.reached or page.keys[-1]
    assert sorted(queued) == sorted(id for _, id in found)
    assert found == sorted(found)
    back = world.store.read(
        execution_reader.page_by_rank, NAMESPACE, "q0", Criteria(), found[4], 100, Budget(), back=True
    )
    assert back.keys == found[3::-1]


def _paged(world: World, wanted: Criteria, is_ascending: bool, budget: Budget) -> list[str]:
    found: list[str] = []
    after = None
    for _ in range(1000):
        where = Where(after=after, is_ascending=is_ascending)
        page = world.store.read(execution_reader.page, NAMESPACE, wanted, where, 4, budget)
        found += page.keys
        if not page.has_more:
            return found
        after = page.reached or page.keys[-1]
    raise AssertionError("the list does not end")
