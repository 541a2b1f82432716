"""Deploys of an app: a worker declares its set of declarations, and the deploy that should be in force is applied.

    declare   by the child, before it says hello: gives the set a number, applies nothing
    join      by the supervisor: inserts the worker's row with its deploy, and calls `settle` in the same transaction
    settle    also by every supervisor, twice per lease: applies the deploy that should be in force if it is not applied

A child that dies between `declare` and `join` leaves a deploy without a worker, which is never in force. All operations
lock the app's row first, so they run one after the other, and each sees every worker that has joined before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rota.domain import deploy
from rota.domain.deploy import GRACE_LEASES, Deploy
from rota.domain.errors import DefinitionError
from rota.domain.instant import MICROSECONDS
from rota.domain.job import Definition, Queue
from rota.domain.schedule import Spec
from rota.domain.source import Source
from rota.ops import define, dependencies, schedule
from rota.ops.audit import audit
from rota.ops.events import subscriptions
from rota.store.port import Tx, View


class Look(msgspec.Struct, frozen=True):
    """Which deploy is applied, which should be, and which ones the caller's own workers declare."""

    applied: int | None
    due: int | None
    ours: list[int]


def declare(
    tx: Tx,
    namespace: str,
    app: str,
    definitions: Sequence[Definition],
    queues: Sequence[Queue],
    schedules: Mapping[str, Spec],
    sources: Sequence[Source] = (),
    *,
    takes_precedence: bool = False,
) -> int:
    """Returns the number of the deploy with these declarations; adds the deploy if the database does not have it.

    A new deploy gets the highest precedence, a known one only with `takes_precedence`.
    """
    text = deploy.encode(deploy.declared(definitions, queues, schedules, sources))
    who = {"namespace": namespace, "app": app}
    define.lock(tx, namespace, app)
    known = tx.rows("declare_deploy", **who, digest=deploy.digest(text))
    if not known:
        dependencies.check(tx, namespace, app, definitions)
        define.add(tx, namespace, app, definitions, queues)
        return int(tx.rows("add_deploy", **who, digest=deploy.digest(text), content=text)[0][0])
    if takes_precedence:
        tx.run("put_deploy_first", **who, number=known[0][0])
    return int(known[0][0])


def look(view: View, namespace: str, app: str, lease_s: float, ours: Sequence[int] = ()) -> Look:
    """A plain read that says whether `settle` would change anything."""
    found = view.one("applied_deploy", namespace=namespace, app=app)
    applied = None if found is None else found[0]
    own = [row[0] for row in view.rows("deploys_of_workers", workers=list(ours))] if ours else []
    return Look(applied, _due(view, namespace, app, applied, lease_s), own)


def sources(view: View, namespace: str, app: str, known: int | None = None) -> tuple[int, list[Source]] | None:
    """The number of the deploy in force, and its sources of events; None if there is none, or its number is `known`."""
    found = view.one("applied_deploy", namespace=namespace, app=app)
    if found is None or found[0] in (None, known):
        return None
    content = view.one("deploy_content", namespace=namespace, app=app, number=found[0])
    return (int(found[0]), deploy.decode(content[0]).sources) if content else None


def settle(tx: Tx, namespace: str, app: str, lease_s: float, actor: str = "worker") -> int | None:
    """Applies the deploy that should be in force unless it is applied already. Returns its number."""
    applied = define.lock(tx, namespace, app)
    due = _due(tx, namespace, app, applied, lease_s)
    if due is not None and due != applied:
        _apply(tx, namespace, app, due, actor)
        audit(tx, namespace, actor, "deploy.apply", f"{app}.{due}", before=applied, after=due)
    return due


def use(tx: Tx, namespace: str, app: str, number: int, lease_s: float, actor: str) -> bool:
    """Gives a deploy the highest precedence. False if it is not in force yet because no live worker has it."""
    define.lock(tx, namespace, app)
    if not tx.changed("put_deploy_first", namespace=namespace, app=app, number=number):
        raise DefinitionError(f"app {app!r} has no deploy {number}; `rota deploys` lists them")
    audit(tx, namespace, actor, "deploy.use", f"{app}.{number}")
    return settle(tx, namespace, app, lease_s, actor) == number


def _due(view: View, namespace: str, app: str, applied: int | None, lease_s: float) -> int | None:
    candidates = view.records("candidate_deploys", Deploy, namespace=namespace, app=app)
    return deploy.in_force(candidates, applied, view.now, round(GRACE_LEASES * lease_s * MICROSECONDS))


def _apply(tx: Tx, namespace: str, app: str, number: int, actor: str) -> None:
    found = tx.one("deploy_content", namespace=namespace, app=app, number=number)
    assert found is not None, "a deploy that is in force or has a live worker is never pruned"
    declared = deploy.decode(found[0])
    pointed = define.point(tx, namespace, app, declared.jobs)
    define.set_queues(tx, namespace, declared.queues)
    schedule.declare(tx, namespace, app, list(declared.schedules.items()), actor)
    dependencies.declare(tx, namespace, app, pointed)
    subscriptions.declare(tx, namespace, app, pointed)
    tx.run("set_applied_deploy", namespace=namespace, app=app, number=number)
