"""Reads for the enqueues of the HTTP API: executions that were there before, and those that have ended."""

from __future__ import annotations

from collections.abc import Sequence

from rota.store.port import View
from rota.store.reader import ExecutionRow


def executions(view: View, namespace: str, ids: Sequence[str]) -> list[ExecutionRow]:
    """Those of the executions that exist."""
    return view.records("execution", ExecutionRow, namespace=namespace, ids=list(ids)) if ids else []


def ended(view: View, waited: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of the executions, each with its namespace, that have ended or are not there."""
    ids = [id for _, id in waited]
    rows = view.rows("unended_of", ids=ids, lowest=min(ids), highest=max(ids)) if ids else []
    return set(waited) - {(str(row[0]), str(row[1])) for row in rows}
