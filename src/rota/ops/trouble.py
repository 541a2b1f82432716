"""What is wrong with a worker, for `rota doctor` and `rota workers`: it cannot start processes, or stands still."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rota.domain.requirement import STANDS_STILL
from rota.store.port import Tx


def tell(tx: Tx, worker: int, reasons: Mapping[str, str]) -> None:
    """The reasons by what the processes are for; none if all can be started."""
    tx.run("set_trouble", worker=worker, trouble=msgspec.json.encode(reasons).decode() if reasons else None)


def tell_standstill(tx: Tx, worker: int, why: str) -> None:
    """Called by the supervisor of a worker process that does not run; with an empty `why` when it runs again."""
    row = tx.one("trouble_of", worker=worker)
    reasons = msgspec.json.decode(row[0], type=dict[str, str]) if row is not None and row[0] else {}
    others = {what: reason for what, reason in reasons.items() if what != STANDS_STILL}
    tell(tx, worker, {**others, STANDS_STILL: why} if why else others)
