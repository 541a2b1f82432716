"""What a type checker must make of workflows. mypy checks this file like any other; nothing here is run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_type

from rota import App, Context, Job, Workflow
from rota.workflow import (
    Decision,
    Event,
    StepOutcome,
    all_of,
    approve,
    chain,
    default,
    failed,
    first,
    is_none,
    not_,
    one_of,
    otherwise,
    outcomes,
    sleep,
    text,
    this_run,
    wait_for_event,
    when,
)

app = App("typed", url="sqlite://:memory:")


@dataclass
class Raw:
    files: list[str]
    note: str | None


@dataclass
class Size:
    pages: int


@dataclass
class Order:
    id: str
    price: int


@app.job
def extract(day: datetime) -> Raw:
    raise NotImplementedError


@app.job
async def check(raw: Raw) -> bool:
    raise NotImplementedError


@app.job(queue="cpu")
async def transform(file: str, *, bucket: str) -> int:
    raise NotImplementedError


@app.job
def load(ctx: Context, parts: Iterable[int]) -> str:
    raise NotImplementedError


@app.job
def measure(doc: str) -> Size:
    raise NotImplementedError


@app.job
def render(doc: str) -> str:
    raise NotImplementedError


@app.job
def announce(link: str) -> str:
    raise NotImplementedError


@app.job
def page(words: str) -> None:
    raise NotImplementedError


@app.job
def reserve(order: Order, price: int) -> Order:
    raise NotImplementedError


# Map and reduce.
@app.workflow(cron="0 2 * * *", tz="Europe/Berlin", timeout="4h")
def etl() -> str:
    raw = extract.step(this_run.scheduled_for)
    assert_type(raw, Raw)
    parts = transform.after(check.step(raw)).options(at_once=50, tolerate="1%").map(raw.files, bucket="eu")
    assert_type(parts, list[int])
    assert_type(outcomes(parts), list[StepOutcome[int]])
    return load.step(parts)


# Branch and merge.
@app.workflow
def publish(doc: str) -> str:
    size = measure.step(doc)
    with when(all_of(size.pages > 500, not_(one_of(doc, ["a", "b"])))):
        fine = render.options(queue="gpu", name="fine").step(doc)
    with otherwise():
        plain = render.step(doc)
    link = announce.step(first(fine, plain))
    with when(failed(link)):
        page.step(text("announcing {doc} failed", doc=doc))
    return link


# A fallback.
@app.workflow(on_failure="stop", max_nesting=5)
def trip(order: Order) -> Order | None:
    cheap = reserve.options(may_fail=True).step(order, order.price)
    with when(failed(cheap)):
        dear = reserve.step(order, 2 * 500)
    chain(cheap, [dear])
    assert_type(first(cheap, dear), Order)
    assert_type(default(cheap, None), Order | None)
    return default(first(cheap, dear), None)


# A workflow as a step, and recursion.
@app.workflow
def fulfil(order: Order) -> Order | None:
    booked = trip.step(order)
    assert_type(booked, Order | None)
    with when(is_none(booked)):
        fulfil.after(booked, rule="all_done").step(order)
    return booked


@app.workflow
def many(orders: list[Order]) -> list[Order | None]:
    return fulfil.options(name="each", at_once=3).map(orders)


def other_code() -> None:
    assert_type(etl, Workflow[[], str])
    assert_type(publish.to_data(), dict[str, Any])
    assert_type(publish.mermaid(), str)
    assert_type(app.workflow_from("{}"), Workflow[..., Any])
    job: Job[..., Any, Any] = extract
    assert_type(job.map([1]), list[Any])
    assert_type(job.starmap([(1,), {"day": 2}]), list[Any])


@app.job
def deploy(build: str) -> None:
    raise NotImplementedError


@app.job
def tell(build: str, note: str, by: str | None = None) -> None:
    raise NotImplementedError


@app.workflow
def pack_and_ship(order: Order) -> str:
    raise NotImplementedError


@app.workflow
def release(build: str) -> None:
    answer = approve("Release to production?", who=["ops"], timeout="2d")
    assert_type(answer, Decision)
    with when(answer.approved):
        deploy.step(build)
    with otherwise():
        tell.step(build, answer.note, by=answer.by)


@app.workflow
def fulfil_paid(order: Order) -> str | None:
    paid = wait_for_event(["order.paid", "order.declined"], subject=order.id, timeout="3d")
    assert_type(paid, Event)
    with when(paid.name == "order.paid"):
        receipt = pack_and_ship.after(sleep("10m")).step(order)
    return default(receipt, None)


@app.workflow
def named(build: str) -> str:
    seen = approve.options(name="seen", may_fail=True)(text("{b}?", b=build), timeout=60, required=True)
    chain(seen, sleep(5.5), deploy.step(build))
    late = wait_for_event.after(seen, rule="all_done")(
        "built", where={"size": {"gt": 1}}, timeout="1h", on_timeout="skip"
    )
    assert_type(late.emitted_at, datetime)
    return first(late.name, build)


@app.job
def unrender(link: str) -> None:
    raise NotImplementedError


@app.job
async def unreserve(order: Order | None, *, note: str = "") -> bool:
    raise NotImplementedError


# Undo.
@app.workflow(undo_on=("cancelled",))
def saga(order: Order) -> Order:
    link = render.options(undo=unrender).step(order.id)
    assert_type(link, str)
    kept = reserve.options(undo=unreserve, undo_failed=True, may_fail=True).step(order, order.price)
    assert_type(render.options(undo=unrender).map([order.id]), list[str])
    return default(kept, order)
