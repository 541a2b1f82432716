"""Events in Python: declarations and their mistakes, `app.emit`, `ctx.event`, and workflows, on the harness."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from rota import App, ArgumentsError, Context, DefinitionError, EventInfo, KeyConflict, UnknownEvent, WorkflowError
from rota.sdk import file
from rota.testing import harness
from rota.workflow import otherwise, wait_for_event, when


@dataclass
class Order:
    id: str
    total: float = 0.0


@pytest.fixture
def app() -> App:
    return App("shop", url="sqlite://:memory:")


def test_an_event_starts_a_job_with_its_payload(app: App) -> None:
    seen: list[tuple[Order, EventInfo | None]] = []

    @app.job(on="order.paid", where={"total": {"gt": 10}})
    def bill(ctx: Context, order: Order) -> str:
        seen.append((order, ctx.event))
        return order.id

    with harness(app) as rota:
        app.emit("order.paid", {"id": "A-0", "total": 10})
        event = app.emit("order.paid", Order("A-1", 10.5), subject="A-1")
        rota.run_until_idle()
        ((order, about),) = seen
        assert order == Order("A-1", 10.5)
        assert about is not None
        assert (about.id, about.name, about.subject, about.emitted_at) == (event.id, "order.paid", "A-1", rota.now)
        (started,) = event.info().started
        assert app.handle(started.execution_id).result() == "A-1"
        assert app.handle(started.execution_id).info().event.event_id == event.id  # type: ignore[union-attr]
    assert bill.name == "bill"


def test_a_job_that_no_event_started_has_none(app: App) -> None:
    seen: list[Any] = []

    @app.job(on=["order.paid", "order.changed"])
    def bill(ctx: Context, order: Any) -> None:
        seen.append(ctx.event)

    with harness(app) as rota:
        bill.enqueue(1)
        rota.run_until_idle()
    assert seen == [None]


def test_a_payload_that_does_not_fit_fails_the_execution(app: App) -> None:
    @app.job(on="order.paid")
    def bill(order: Order) -> None:
        raise AssertionError

    with harness(app) as rota:
        event = app.emit("order.paid", {"total": 5})
        rota.run_until_idle()
        (started,) = event.info().started
        assert (started.status, app.handle(started.execution_id).info().reason) == ("failed", "bad_arguments")


def test_keys_and_handles(app: App) -> None:
    with harness(app):
        first = app.emit("paid", {"a": 1}, key="k")
        again = app.emit("paid", {"a": 1}, key="k")
        assert (first.created, again.created, first.id == again.id) == (True, False, True)
        with pytest.raises(KeyConflict):
            app.emit("paid", {"a": 2}, key="k")
        assert asyncio.run(app.aemit("paid", {"a": 1}, key="k")).id == first.id
        info = first.info()
        assert (info.name, info.payload, info.subject, info.key, info.is_delivered) == (
            "paid",
            {"a": 1},
            None,
            "k",
            True,
        )
        assert first.replay() == 0


def test_many_events_at_once(app: App) -> None:
    @app.job(on="paid")
    def bill(order: Any) -> Any:
        return order

    with harness(app) as rota:
        made = app.emit_many(["paid", {"name": "paid", "payload": 2, "subject": "s", "key": "k"}])
        rota.run_until_idle()
        results = [app.handle(one.info().started[0].execution_id).result() for one in made]
        assert results == [None, 2]
        assert app.emit_many([]) == []
        for one in ("paid", {"name": "paid"}):
            with pytest.raises(ArgumentsError, match="a list of events"):
                app.emit_many(one)
        with pytest.raises(ArgumentsError, match="emit_many"):
            app.emit_many([{"payload": 1}])
        with pytest.raises(DefinitionError, match="'subjekt'"):
            app.emit_many([{"name": "paid", "subjekt": 1}])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "a b"}, "an event's name"),
        ({"name": "paid", "subject": ""}, "subject"),
        ({"name": "paid", "key": ""}, "key"),
        ({"name": "paid", "payload": {1j}}, "payload"),
        ({"name": "paid", "payload": "x" * 2_000_000}, "bytes"),
    ],
)
def test_an_event_that_cannot_be_emitted(app: App, given: dict[str, Any], words: str) -> None:
    with harness(app), pytest.raises((DefinitionError, ArgumentsError), match=words):
        app.emit(**given)


def test_an_unknown_event(app: App) -> None:
    with harness(app), pytest.raises(UnknownEvent):
        app._client.event("nothing")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"on": "a b"}, "an event's name"),
        ({"on": 5}, "list of names"),
        ({"on": []}, "1 to 20 names"),
        ({"where": {"a": 1}}, "add on="),
        ({"debounce": "1s"}, "add on="),
        ({"on": "paid", "where": "total > 5"}, "where must be a dict"),
        ({"on": "paid", "where": {"a b": 1}}, "not a path"),
        ({"on": "paid", "where": {"total": {"greater": 1}}}, "no operator 'greater'"),
        ({"on": "paid", "where": {"total": {"gt": None}}}, "a number or a text"),
        ({"on": "paid", "where": {"total": {"in": 5}}}, "in takes a list"),
        ({"on": "paid", "where": {"total": {"exists": 1}}}, "True or False"),
        ({"on": "paid", "where": {"total": {"prefix": 1}}}, "prefix takes a text"),
        ({"on": "paid", "where": {"total": object()}}, "JSON"),
        ({"on": "paid", "debounce": "0s"}, "longer than zero"),
    ],
)
def test_an_invalid_declaration_is_refused(app: App, options: dict[str, Any], words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        app.job(name="bill", **options)(lambda x: x)
    with pytest.raises(DefinitionError, match=words):
        app.workflow(name="bill", **options)(lambda x: x)


def test_debounce(app: App) -> None:
    ran: list[int] = []

    @app.job(on="changed", debounce="10s")
    def index(number: int) -> None:
        ran.append(number)

    with harness(app) as rota:
        for number in range(3):
            app.emit("changed", number)
            rota.advance("9s")
        assert ran == []
        rota.advance("1s")
        assert ran == [0]


def test_jobs_as_data(app: App) -> None:
    made = file.app({"jobs": {"report": {"command": ["echo", "{month}"], "on": "month.ended"}}}, "ops")
    with harness(made) as rota:
        event = made.emit("month.ended", "june")
        rota.run_until_idle()
        (started,) = event.info().started
        assert (started.job, started.status) == ("report", "success")


def test_a_workflow_that_an_event_starts_and_that_waits_for_another(app: App) -> None:
    @app.job
    def ship(order: Any) -> str:
        return f"shipped {order['id']}"

    @app.job
    def tell(order: Any) -> str:
        return "declined"

    @app.workflow(on="order.created")
    def fulfil(order: Order) -> None:
        paid = wait_for_event(["order.paid", "order.declined"], subject=order.id, timeout="3d")
        with when(paid.name == "order.paid"):
            ship.step(order)
        with otherwise():
            tell.step(order)

    with harness(app) as rota:
        one, other = app.emit("order.created", {"id": "A-1"}), app.emit("order.created", {"id": "A-2"})
        rota.run_until_idle()
        rota.advance("1d")
        app.emit("order.paid", subject="A-1")
        app.emit("order.declined", subject="A-2")
        rota.run_until_idle()
        runs = [fulfil.handle(event.info().started[0].execution_id) for event in (one, other)]
        assert [run.status() for run in runs] == ["success", "success"]
        assert [run.step("ship").status for run in runs] == ["success", "skipped"]


def test_where_of_a_wait_may_use_values(app: App) -> None:
    @app.workflow
    def pay(order: str) -> Any:
        paid = wait_for_event("paid", where={"order": order, "total": {"ge": 5}}, timeout="1h")
        return paid.payload

    with harness(app) as rota:
        run = pay.start("A-1")
        rota.run_until_idle()
        for order, total in (("A-2", 9), ("A-1", 4), ("A-1", 5)):
            app.emit("paid", {"order": order, "total": total})
            rota.run_until_idle()
        assert run.result() == {"order": "A-1", "total": 5}


def test_where_of_a_wait_is_checked_when_the_workflow_is_built(app: App) -> None:
    @app.workflow
    def pay() -> Any:
        return wait_for_event("paid", where={"total": {"over": 5}}, timeout="1h").payload

    with pytest.raises(WorkflowError, match="no operator 'over'"):
        pay.check()


def test_sources_are_part_of_a_deploy(app: App) -> None:
    app.watch("/drop", "file.dropped", pattern="*.csv", settle="10s")
    app.outbox("shop.outbox")
    with pytest.raises(DefinitionError, match="already"):
        app.outbox("shop.outbox")
    with harness(app):
        first = app.declare()
        app.watch("/drop", "file.dropped", pattern="*.txt")
        assert app.declare() != first
