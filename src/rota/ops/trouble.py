"""What a worker says of itself when it cannot start processes, for those who look."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rota.store.port import Tx


def tell(tx: Tx, worker: int, reasons: Mapping[str, str]) -> None:
    """The reasons by what the processes are for; none if all can be started."""
    tx.run("set_trouble", worker=worker, trouble=msgspec.json.encode(reasons).decode() if reasons else None)
