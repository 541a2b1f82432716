"""Circuit breakers: attempts that ended are counted here, and a claim asks here what may start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import astuple

from rota.domain import breaker
from rota.domain.breaker import Breaker, Circuit
from rota.domain.errors import UsageError
from rota.ops.audit import audit
from rota.store.port import Tx, View

Ended = tuple[tuple[Breaker, ...], bool | None]
"""What an attempt relied on, and whether it went well; None if that cannot be said."""


def circuits(view: View, namespace: str) -> list[Circuit]:
    """Every breaker that has seen a failure."""
    return view.records("breakers", Circuit, namespace=namespace)


def open_circuits(view: View, namespace: str) -> dict[str, Circuit]:
    return {circuit.name: circuit for circuit in view.records("open_breakers", Circuit, namespace=namespace)}


def count(tx: Tx, id: str, ended: Sequence[Ended]) -> None:
    """After attempts of one namespace, in the order in which they ended; `id` is one of their executions.

    As long as all goes well this reads one row and writes none.
    """
    found = tx.one("namespace_of", id=id)
    if found is None:
        return
    namespace = found[0]
    names = sorted({policy.name for policies, _ in ended for policy in policies})
    if not any(went_well is False for _, went_well in ended):
        known = tx.records("breakers_named", Circuit, namespace=namespace, names=names)
        names = [circuit.name for circuit in known if circuit.is_troubled]
        if not names:
            return
    tx.run("add_breakers", namespace=namespace, rows=[(name,) for name in names])
    locked = tx.records("lock_breakers", Circuit, namespace=namespace, names=names)
    before = {circuit.name: circuit for circuit in locked}
    now = dict(before)
    for policies, went_well in ended:
        for policy in policies:
            if policy.name in now:
                now[policy.name] = breaker.after(now[policy.name], policy, went_well, tx.now)
    changed = [circuit for circuit in now.values() if circuit != before[circuit.name]]
    if changed:
        tx.run("set_breakers", namespace=namespace, rows=list(map(astuple, changed)))
        _tell(tx, before, changed)


def probe(tx: Tx, namespace: str, names: Sequence[str]) -> bool:
    """Whether the next execution may be the one that tries; nobody else may then for a while."""
    wanted = sorted(names)
    for count, name in enumerate(wanted):
        if not tx.run("probe", namespace=namespace, name=name):
            release(tx, namespace, wanted[:count])
            return False
    return True


def release(tx: Tx, namespace: str, names: Sequence[str]) -> None:
    """The one that was to try does not start after all: another may."""
    if names:
        tx.run("release_probe", namespace=namespace, names=list(names))


def close(tx: Tx, namespace: str, name: str, actor: str) -> bool:
    """Somebody knows that it works again; False if it was closed already."""
    known = tx.records("lock_breakers", Circuit, namespace=namespace, names=[name])
    if not known:
        raise UsageError(f"no breaker {name!r} has seen a failure; `rota breakers` lists those that have")
    if not known[0].is_troubled:
        return False
    tx.run("set_breakers", namespace=namespace, rows=[astuple(Circuit(name))])
    audit(tx, actor, "breaker.close", name)
    return known[0].opened_at is not None


def _tell(tx: Tx, before: Mapping[str, Circuit], changed: Sequence[Circuit]) -> None:
    for circuit in changed:
        was_open = before[circuit.name].opened_at is not None
        if circuit.opened_at is not None and not was_open:
            audit(tx, "rota", "breaker.open", circuit.name, after={"failures": circuit.failures})
        elif circuit.opened_at is None and was_open:
            audit(tx, "rota", "breaker.close", circuit.name)
