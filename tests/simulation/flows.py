"""Workflows under the simulation: what they are, a client that starts, cancels, pauses and retries runs of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from rota.domain.errors import StoreError
from rota.domain.job import Definition
from rota.domain.requirement import Needs
from rota.domain.status import Reason
from rota.domain.subscription import Subscribes
from rota.ops import control
from rota.ops.events import deliver, emit
from rota.ops.runs import chores, expand, pause, start
from rota.ops.runs.retry import Request, retry
from rota.ops.runs.sweep import sweep
from rota.ops.submission import Header
from rota.store import reader
from rota.store.port import Tx
from tests.simulation.child import APP, NAMESPACE
from tests.simulation.clients import Client
from tests.simulation.history import Try

EARLY_S = 57.0
"""The sweeper looks at runs so much earlier than otherwise, to find nothing."""
PAID, DECLINED = "paid", "declined"
SUBJECTS = ("one", "two")
SUBSCRIBERS = {
    "told": Subscribes([DECLINED, PAID]),
    "choosy": Subscribes([PAID], where={"n": {"ge": 2}}),
    "patient": Subscribes([PAID], debounce_s=0.8),
    "flow_sleep": Subscribes([DECLINED]),
}
"""The jobs and workflows that events start."""


def _ref(path: str) -> dict[str, str]:
    return {"$": path}


def _steady(id: str, seconds: float = 0.1, tag: Any = 0, **more: Any) -> dict[str, Any]:
    return {"id": id, "job": "steady", "with": {"seconds": seconds, "tag": tag}, **more}


DIAMOND = [
    _steady("a"),
    _steady("b", 0.5, _ref("a.fence")),
    _steady("c", 0.2, _ref("a.fence")),
    _steady("d", 0.0, _ref("b.fence"), after=["c"]),
]
GRAPHS: dict[str, dict[str, Any]] = {
    "flow_chain": {"steps": [_steady("a"), _steady("b", tag=_ref("a.fence")), _steady("c", tag=_ref("b.fence"))]},
    "flow_diamond": {"steps": DIAMOND, "result": _ref("d")},
    "flow_map": {
        "steps": [
            {"id": "m", "job": "steady", "map": [0.0, 0.3, 0.1, 0.2, 0.0], "as": "seconds", "at_once": 2},
            _steady("j", after=["m"]),
        ],
        "result": _ref("m"),
    },
    "flow_wide": {
        "steps": [
            {"id": "m", "job": "once", "map": [False] * 9 + [True] + [False] * 4, "as": "fails", "tolerate": 3},
            _steady("j", after=["m"]),
        ],
        "result": _ref("m"),
    },
    "flow_nested": {
        "steps": [
            {"id": "m", "workflow": "flow_diamond", "map": [1, 2, 3], "as": "x", "at_once": 2},
            {"id": "n", "workflow": "flow_map"},
            _steady("j", after=["m", "n"]),
        ],
        "result": _ref("m"),
    },
    "flow_failing": {
        "steps": [
            {"id": "a", "job": "once", "with": {"fails": True}, "may_fail": True},
            _steady("b", when=[{"failed": "a"}]),
            {"id": "c", "job": "doomed"},
            _steady("d", 3.0),
            {"id": "m", "workflow": "flow_map"},
            _steady("z", after=["c", "d"], rule="always"),
        ],
        "on_failure": "stop",
    },
    "flow_timeout": {
        "steps": [{"id": "a", "job": "long", "with": {"seconds": 6.0}}, _steady("b", after=["a"])],
        "timeout": 2.5,
    },
    "flow_sleep": {"steps": [_steady("a"), {"id": "s", "sleep": 1.2, "after": ["a"]}, _steady("b", after=["s"])]},
    "flow_approval": {
        "steps": [
            {"id": "ok", "approve": {"text": "Go on?", "timeout": 5.0}},
            _steady("yes", when=[{"eq": [_ref("ok.approved"), True]}]),
            _steady("no", when=[{"eq": [_ref("ok.approved"), False]}]),
        ],
        "result": _ref("ok"),
    },
    "flow_event": {
        "steps": [
            {"id": "e", "event": {"names": [PAID, DECLINED], "subject": "one", "timeout": 5.0, "on_timeout": "skip"}},
            _steady("s", 0.5),
            {
                "id": "f",
                "event": {"names": [PAID], "where": {"n": {"ge": 2}}, "lookback": 2.0, "timeout": 6.0},
                "after": ["e", "s"],
                "rule": "all_done",
            },
            _steady("b", after=["f"]),
        ],
        "result": _ref("f"),
    },
    "flow_booking": {
        "steps": [
            _steady("a", undo="revert"),
            {"id": "m", "job": "steady", "map": [0.0, 0.2, 0.1], "as": "seconds", "at_once": 2, "undo": "revert"},
            _steady("c", after=["a", "m"]),
        ],
    },
    "flow_trip": {
        "steps": [
            _steady("a", undo="reluctant"),
            {"id": "w", "workflow": "flow_booking", "after": ["a"]},
            _steady("b", undo="revert", after=["a"]),
            {"id": "ok", "approve": {"text": "Pay?", "timeout": 4.0, "required": True}, "after": ["w", "b"]},
            {"id": "d", "job": "once", "with": {"fails": {"$": "ok.timed_out"}}, "undo": "revert"},
        ],
    },
    "flow_saga": {
        "steps": [
            {"id": "m", "job": "once", "map": [False, True, False], "as": "fails", "undo": "revert"},
            _steady("a", 0.3, undo="revert"),
            {"id": "f", "job": "once", "with": {"fails": True}, "undo": "revert", "undo_failed": True, "after": ["a"]},
        ],
    },
    "flow_deep": {"steps": [{"id": "a", "workflow": "flow_deep"}], "max_nesting": 1},
}
DEFINITIONS = [
    Definition(
        name=name,
        target={"kind": "workflow", "graph": {"rota": "workflow/1", "name": name, **graph}},
        needs=Needs(workflow=True),
        on=SUBSCRIBERS.get(name),
    )
    for name, graph in GRAPHS.items()
]
OUTSIDE = [name for name, graph in GRAPHS.items() if any("approve" in one or "event" in one for one in graph["steps"])]
"""The workflows that wait for something from outside, which are started more often."""


@contextmanager
def small_and_watched(errors: list[str]) -> Iterator[None]:
    """Maps are expanded and events delivered in small chunks, and whatever the sweeper repairs is an error."""

    def watched(tx: Tx) -> list[str]:
        found = sweep(tx, EARLY_S)
        errors.extend(f"the sweeper repaired run {id}" for id in found)
        return found

    sizes = [(start, "AT_FIRST", 5), (expand, "CHUNK", 4), (emit, "MOST", 2), (deliver, "CHUNK", 2)]
    with ExitStack() as stack:
        for module, name, value in sizes:
            stack.enter_context(mock.patch.object(module, name, value))
        stack.enter_context(mock.patch.object(chores, "sweep", watched))
        yield


class Starter(Client):
    """Starts runs, and then changes its mind about some of them."""

    async def _wish(self) -> None:
        draw = self._entropy.random()
        if draw < 0.6:
            await self._start()
        elif draw < 0.75:
            await self._on_a_run("cancel", control.cancel)
        elif draw < 0.88:
            await self._pause_a_run()
        else:
            await self._retry_a_run()

    async def be_calm(self, count: int, within_s: float) -> None:
        """Retries what has failed, runs whose undo failed first."""
        for _ in range(count):
            await asyncio.sleep(self._entropy.expovariate(count / within_s))
            await self._retry_a_run(Reason.UNDO_FAILED)

    async def _start(self) -> None:
        job = self._entropy.choice([*GRAPHS, *OUTSIDE, *OUTSIDE])
        delay_s = self._entropy.choice([0.0, 0.0, self._entropy.uniform(0, 2)])
        header = Header(namespace=NAMESPACE, app=APP, job=job, queue="default", actor="client", delay_s=delay_s)
        await self._submit_all(header, "{}")

    def _some_run(self) -> str | None:
        known = self._memory.ids()
        return known[-1 - min(len(known) - 1, int(self._entropy.expovariate(0.3)))] if known else None

    async def _on_a_run(self, verb: str, op: Any) -> None:
        if (id := self._some_run()) is not None:
            await self._order(verb, [id], [], op, id, "client")

    async def _pause_a_run(self) -> None:
        if (id := self._some_run()) is not None:
            await self._insist(Try(0, ""), pause.pause, NAMESPACE, id, "client")
            await asyncio.sleep(self._entropy.uniform(0.5, 4))
            await self._insist(Try(0, ""), pause.resume, NAMESPACE, id, "client")

    async def _retry_a_run(self, preferred: Reason | None = None) -> None:
        try:
            rows = await self._calls.read(reader.dead, NAMESPACE, reader.Filter(limit=50))
        except StoreError:
            return
        failed = [row for row in rows if row.job in GRAPHS]
        if failed := [row for row in failed if row.reason == preferred] or failed:
            id, new_id = self._entropy.choice(failed).id, self._ids.new()
            await self._order("retry", [id], [new_id], retry, id, new_id, "client", Request())
