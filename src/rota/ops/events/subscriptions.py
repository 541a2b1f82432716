"""The subscriptions of jobs and workflows: those that the deploy in force declares."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rota.domain.job import Definition
from rota.domain.subscription import Target
from rota.ops.events.matching import Subscription
from rota.store.port import Tx


def declare(tx: Tx, namespace: str, app: str, definitions: Iterable[Definition]) -> None:
    """Replaces the subscriptions of all jobs of the app. A subscription that existed before keeps its `since_at`."""
    where = {"namespace": namespace, "app": app}
    _set(tx, namespace, app, tx.records("subscriptions_of_app", Subscription, **where), definitions)


def put(tx: Tx, namespace: str, app: str, job: str, about: Definition | None) -> None:
    """Sets the subscriptions of one job; None removes them."""
    known = tx.records("subscriptions_of_job", Subscription, namespace=namespace, app=app, job=job)
    _set(tx, namespace, app, known, [] if about is None else [about])


def _set(tx: Tx, namespace: str, app: str, known: Iterable[Subscription], definitions: Iterable[Definition]) -> None:
    before = {(one.name, one.subscriber): one for one in known}
    after = {(one.name, one.subscriber): one for about in definitions for one in _declared(tx.now, app, about)}
    for key, one in after.items():
        if key in before:
            after[key] = msgspec.structs.replace(one, since_at=before[key].since_at)
    if gone := sorted(before.keys() - after.keys()):
        tx.run("drop_subscriptions", namespace=namespace, rows=gone)
    changed = [one for key, one in sorted(after.items()) if before.get(key) != one]
    if changed:
        rows = [(one.name, one.subscriber, one.since_at, one.job, one.filter, one.target) for one in changed]
        tx.run("put_subscriptions", rows=rows, namespace=namespace, app=app)


def subscriber(app: str, job: str) -> str:
    """The key of a job in `subscription`. It cannot equal that of a step, which is an id and has no slash."""
    return f"{app}/{job}"


def _declared(now: int, app: str, about: Definition) -> list[Subscription]:
    if about.on is None:
        return []
    target = Target(
        about.queue,
        about.priority,
        about.start_within_s,
        about.on.debounce_s,
        [name for name, one in about.parameters.items() if not one.get("others")],
        about.takes_others,
    )
    named = (app, about.name, None, _json(about.on.where) if about.on.where else None, _json(target))
    return [Subscription(name, subscriber(app, about.name), now, *named) for name in about.on.names]


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
