"""Quotas of namespaces: set them, check them in the transaction that adds something, and count the live servers."""

from __future__ import annotations

import re

from rota.domain import quota
from rota.domain.errors import QuotaExceeded
from rota.domain.instant import MICROSECONDS
from rota.domain.quota import Quotas
from rota.ops.audit import audit
from rota.store.port import Tx

ALIVE_S = 15.0
"""A server that was not seen for this long no longer has a share of a rate."""
_COUNTED = {
    "max_jobs": ("jobs", "count_jobs"),
    "max_schedules": ("schedules", "count_schedules"),
    "max_tokens": ("tokens", "count_tokens"),
}
"""For each quota what it counts, and the statement that does."""


def set_quotas(tx: Tx, namespace: str, wanted: Quotas, actor: str) -> bool:
    """Replaces the quotas of a namespace, which is added if it is new. Returns whether that changed anything."""
    tx.run("add_namespace", namespace=namespace)
    found = tx.one("lock_quotas", namespace=namespace)
    before, after = found[0] if found else None, quota.encode(wanted)
    if before == after:
        return False
    tx.run("set_quotas", namespace=namespace, quotas=after)
    audit(tx, namespace, actor, "namespace.quotas", namespace, before=_shown(before), after=_shown(after))
    return True


def check_quota(tx: Tx, namespace: str, name: str, adding: int = 1, *, added: int = 0) -> None:
    """Refuses to add jobs, schedules or tokens beyond a quota: `name` is `max_jobs`, `max_schedules` or `max_tokens`.

    To be called in the transaction that adds them, which may have `added` some already. The row of the namespace is the
    lock: of two transactions that add the last one, the second counts after the first has ended.
    """
    found = tx.one("lock_quotas", namespace=namespace)
    limit = getattr(quota.decode(found[0] if found else None), name)
    if limit is None:
        return
    what, statement = _COUNTED[name]
    row = tx.one(statement, namespace=namespace)
    use = (int(row[0]) if row else 0) - added
    if use + added + adding > limit:
        member = re.sub("_([a-z])", lambda part: part[1].upper(), name)
        words = f"the namespace {namespace} may have {limit:,} {what} ({member}) and has {use:,}: remove some first"
        raise QuotaExceeded(words, member, limit, use)


def seen(tx: Tx, node: str) -> int:
    """Notes that a server is alive, forgets those that are not, and returns how many there are."""
    tx.run("see_node", id=node, until=tx.now - round(10 * ALIVE_S * MICROSECONDS))
    found = tx.one("live_nodes", since=tx.now - round(ALIVE_S * MICROSECONDS))
    return max(1, int(found[0]) if found else 1)


def gone(tx: Tx, node: str) -> None:
    """A server has stopped: its share goes to the others."""
    tx.run("forget_node", id=node)


def _shown(stored: str | None) -> Quotas:
    return quota.decode(stored)
