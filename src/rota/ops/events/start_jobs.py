"""Starting the jobs and workflows that subscribe to an event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rota import ids
from rota.domain import payload, subscription, unique
from rota.domain.rank import Policy
from rota.domain.subscription import Target
from rota.domain.unique import OnConflict, Scope, Unique
from rota.ops import dependencies, keys
from rota.ops.events.matching import Emitted, Pair, Subscription
from rota.ops.place import Batch, Origin, Route, find_route, place
from rota.ops.submission import Header, Item
from rota.store.port import Tx

ACTOR = "event"


def start_jobs(tx: Tx, pairs: Sequence[Pair]) -> list[tuple[str, str, str]]:
    """Places an execution for each pair, except for jobs that were removed.

    Returns the rows of `delivery`: the event, the subscriber and the execution.
    """
    if not pairs:
        return []
    targets = {one.subscriber: subscription.decode_target(one.target or "{}") for _, one in pairs}
    routes = _routes(tx, pairs, targets)
    known = [(event, one) for event, one in pairs if one.subscriber in routes]
    at_once = [(event, one) for event, one in known if targets[one.subscriber].debounce_s is None]
    batches = [_batch(tx, event, one, targets[one.subscriber], routes[one.subscriber]) for event, one in at_once]
    place(tx, batches)
    # The depth limit of a queue is not checked, as for ticks: an emit is not refused because a queue is full.
    started = [
        (event.id, one.subscriber, next(iter(batch.items)))
        for (event, one), batch in zip(at_once, batches, strict=True)
    ]
    debounced = [(event, one) for event, one in known if targets[one.subscriber].debounce_s is not None]
    started += _debounce(tx, debounced, targets, routes)
    for subscriber in sorted({one.subscriber for _, one in known}):
        if (route := routes[subscriber]).depends:
            dependencies.clear(tx, (route.namespace, route.app, route.job))
    return started


def _batch(tx: Tx, event: Emitted, one: Subscription, target: Target, route: Route) -> Batch:
    arguments = subscription.arguments(target, event.payload)
    deadline = unique.start_deadline(tx.now, None, target.start_within_s)
    origin, items = Origin(actor=ACTOR), {_id(tx, event, one): arguments}
    return Batch(items, route, origin, target.priority, tx.now, deadline=deadline, event=event.info)


def _debounce(
    tx: Tx, pairs: Sequence[Pair], targets: Mapping[str, Target], routes: Mapping[str, Route]
) -> list[tuple[str, str, str]]:
    """Each event postpones the pending execution of the same job and subject, or places one if there is none."""
    calls = [(_header(event, one, targets[one.subscriber]), [_item(tx, event, one, targets)]) for event, one in pairs]
    keys.lock(tx, calls)
    started = []
    for (event, one), (header, items) in zip(pairs, calls, strict=True):
        resolved = keys.resolve(tx, header, items)
        if resolved.new:
            run_at = header.run_at(tx.now)
            new, deadline = {item.id: item.arguments for item in resolved.new}, header.deadline(run_at)
            route = routes[one.subscriber]
            place(tx, [Batch(new, route, header, header.priority, run_at, deadline=deadline, event=event.info)])
        started.append((event.id, one.subscriber, resolved.answers[0].id))
    return started


def _header(event: Emitted, one: Subscription, target: Target) -> Header:
    return Header(
        namespace=event.namespace,
        app=one.app or "",
        job=one.job or "",
        queue=target.queue,
        actor=ACTOR,
        priority=target.priority,
        delay_s=target.debounce_s or 0.0,
        start_within_s=target.start_within_s,
        unique=Unique(key=f"event:{event.subject}", scope=Scope.QUEUED, on_conflict=OnConflict.DEBOUNCE),
    )


def _item(tx: Tx, event: Emitted, one: Subscription, targets: Mapping[str, Target]) -> Item:
    arguments = subscription.arguments(targets[one.subscriber], event.payload)
    return Item(_id(tx, event, one), arguments, payload.digest(arguments))


def _id(tx: Tx, event: Emitted, one: Subscription) -> str:
    """A subscriber gets an event once, so their names together are unique. The sequence of the event's id keeps the
    order of events of the same millisecond."""
    return ids.named(tx.now, f"{event.id} {one.subscriber}", ids.sequence(event.id))


def _routes(tx: Tx, pairs: Sequence[Pair], targets: Mapping[str, Target]) -> dict[str, Route]:
    """The route of each subscriber whose job exists."""
    namespace = pairs[0][0].namespace
    jobs = {one.subscriber: (one.app or "", one.job or "", targets[one.subscriber].queue) for _, one in pairs}
    known = {
        (app, job, queue): Route(namespace, app, job, queue, version, lane, Policy(policy), most, bool(depends))
        for app, job, queue, version, lane, policy, most, depends in tx.rows(
            "routes", namespace=namespace, jobs=sorted(set(jobs.values()))
        )
    }
    found = {subscriber: known.get(job) or find_route(tx, namespace, *job) for subscriber, job in jobs.items()}
    return {subscriber: route for subscriber, route in found.items() if route is not None}
