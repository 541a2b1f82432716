"""Circuit breakers: counts failed attempts, and tells claims which breakers are open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import astuple

from rota.domain import breaker
from rota.domain.breaker import Breaker, Circuit
from rota.domain.errors import UsageError
from rota.ops.audit import audit
from rota.store.port import Tx, View

Shown = tuple[str, tuple[Breaker, ...], bool | None]
"""An execution, the breakers of its job, and whether its attempt shows that the service works; None if unknown."""


def circuits(view: View, namespace: str) -> list[Circuit]:
    """Every breaker that has seen a failure."""
    return view.records("breakers", Circuit, namespace=namespace)


def count(tx: Tx, attempts: Sequence[Shown]) -> None:
    """Counts attempts in the order in which they ended.

    Attempts, not executions: a breaker opens while executions are still retried. As long as all attempts succeed this
    writes nothing.
    """
    ids = [attempt[0] for attempt in attempts]
    if not ids:
        return
    found: dict[str, str] = dict(tx.rows("namespaces_of", ids=ids, lowest=min(ids), highest=max(ids)))
    for namespace in sorted(set(found.values())):
        _count(tx, namespace, [attempt for attempt in attempts if found.get(attempt[0]) == namespace])


def _count(tx: Tx, namespace: str, attempts: Sequence[Shown]) -> None:
    """Counts the attempts of one namespace."""
    names = sorted({policy.name for _, policies, _ in attempts for policy in policies})
    if not any(works is False for _, _, works in attempts):
        known = tx.records("breakers_named", Circuit, namespace=namespace, names=names)
        names = [circuit.name for circuit in known if circuit.is_troubled]
        if not names:
            return
    tx.run("add_breakers", namespace=namespace, rows=[(name,) for name in names])
    locked = tx.records("lock_breakers", Circuit, namespace=namespace, names=names)
    before = {circuit.name: circuit for circuit in locked}
    now = dict(before)
    for _, policies, works in attempts:
        for policy in policies:
            if policy.name in now:
                now[policy.name] = breaker.after(now[policy.name], policy, works, tx.now)
    changed = [circuit for circuit in now.values() if circuit != before[circuit.name]]
    if changed:
        tx.run("set_breakers", namespace=namespace, rows=list(map(astuple, changed)))
        _audit(tx, namespace, before, changed)


def probe(tx: Tx, namespace: str, names: Sequence[str]) -> bool:
    """Whether the next execution may be the probe of these breakers. If so, no other may for a while."""
    wanted = sorted(names)
    for count, name in enumerate(wanted):
        if not tx.changed("probe", namespace=namespace, name=name):
            release(tx, namespace, wanted[:count])
            return False
    return True


def release(tx: Tx, namespace: str, names: Sequence[str]) -> None:
    """The probe does not start: another execution may be the probe."""
    if names:
        tx.run("release_probe", namespace=namespace, names=list(names))


def close(tx: Tx, namespace: str, name: str, actor: str) -> bool:
    """Closes a breaker on request; False if it was closed already."""
    known = tx.records("lock_breakers", Circuit, namespace=namespace, names=[name])
    if not known:
        raise UsageError(f"no breaker {name!r} has seen a failure; `rota breakers` lists those that have")
    if not known[0].is_troubled:
        return False
    tx.run("set_breakers", namespace=namespace, rows=[astuple(Circuit(name))])
    audit(tx, namespace, actor, "breaker.close", name)
    return known[0].opened_at is not None


def open_by_hand(tx: Tx, namespace: str, name: str, actor: str) -> bool:
    """Opens a breaker until it is closed by hand, without probes; False if that was done already."""
    tx.run("add_breakers", namespace=namespace, rows=[(name,)])
    (known,) = tx.records("lock_breakers", Circuit, namespace=namespace, names=[name])
    if known.opened_at is not None and known.retry_at == breaker.UNTIL_CLOSED:
        return False
    opened_at = tx.now if known.opened_at is None else known.opened_at
    now = Circuit(name, known.failures, opened_at, breaker.UNTIL_CLOSED)
    tx.run("set_breakers", namespace=namespace, rows=[astuple(now)])
    audit(tx, namespace, actor, "breaker.open", name)
    return True


def _audit(tx: Tx, namespace: str, before: Mapping[str, Circuit], changed: Sequence[Circuit]) -> None:
    for circuit in changed:
        was_open = before[circuit.name].opened_at is not None
        if circuit.opened_at is not None and not was_open:
            audit(tx, namespace, "rota", "breaker.open", circuit.name, after={"failures": circuit.failures})
        elif circuit.opened_at is None and was_open:
            audit(tx, namespace, "rota", "breaker.close", circuit.name)
