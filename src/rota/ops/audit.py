"""The audit trail: every operator action has a row in the transaction that carried it out."""

from __future__ import annotations

import msgspec

from rota.domain.actor import Actor
from rota.store.port import Tx


def audit(
    tx: Tx, namespace: str, actor: str, action: str, subject: str, before: object = None, after: object = None
) -> None:
    if isinstance(actor, Actor) and actor.is_recorded_once:
        return
    tx.run(
        "add_audit",
        namespace=namespace,
        actor=str(actor),
        address=actor.address if isinstance(actor, Actor) else None,
        request=actor.request if isinstance(actor, Actor) else None,
        action=action,
        subject=subject,
        before=None if before is None else msgspec.json.encode(before).decode(),
        after=None if after is None else msgspec.json.encode(after).decode(),
    )
