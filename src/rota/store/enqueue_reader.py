"""Which executions that callers wait for have ended."""

from __future__ import annotations

from collections.abc import Sequence

from rota.store.port import View


def ended(view: View, waited: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of the executions, each with its namespace, that have ended or are not there."""
    ids = [id for _, id in waited]
    rows = view.rows("unended_of", ids=ids, lowest=min(ids), highest=max(ids)) if ids else []
    return set(waited) - {(str(row[0]), str(row[1])) for row in rows}
