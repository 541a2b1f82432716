"""The audit trail: every operator action has a row in the transaction that carried it out."""

from __future__ import annotations

import msgspec

from rota.store.port import Tx


def audit(
    tx: Tx, namespace: str, actor: str, action: str, subject: str, before: object = None, after: object = None
) -> None:
    tx.run(
        "add_audit",
        namespace=namespace,
        actor=actor,
        action=action,
        subject=subject,
        before=None if before is None else msgspec.json.encode(before).decode(),
        after=None if after is None else msgspec.json.encode(after).decode(),
    )
