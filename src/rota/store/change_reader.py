"""Reads the changes of a namespace: from the audit trail, the versions of jobs, and the workers."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.domain import change
from rota.domain.change import Change
from rota.store.port import View

MOST = 1000
"""The most changes that are read from each source."""
LOOKS = 20_000


def changes(view: View, namespace: str, low: int, high: int) -> list[Change]:
    """The newest changes from `low` to before `high`, oldest first."""
    about = {"namespace": namespace, "low": low, "high": high, "most": MOST}
    rows = [(*row[:5], _decoded(row[5])) for row in view.rows("audited_between", **about, looks=LOOKS)]
    audited = [one for row in rows if (one := change.of_audit(*row)) is not None]
    versions = [change.of_version(*row) for row in view.rows("versions_between", **about)]
    ids = [int(one.subject.id) for one in audited if one.subject.kind == "worker" and one.subject.id.isdecimal()]
    names = {str(id): name for id, name in view.rows("names_of_workers", ids=ids)} if ids else {}
    found = change.merged(audited, versions, names)
    for id, name, app, at in view.rows("workers_started_between", **about):
        found.append(change.of_worker(id, name, app, at, None, None))
    for id, name, app, at, state, ended in view.rows("workers_stopped_between", **about):
        found.append(change.of_worker(id, name, app, at, state, _decoded(ended)))
    return sorted(found, key=lambda one: (one.at, one.id))[-MOST:]


def _decoded(stored: str | None) -> Any:
    try:
        return None if stored is None else msgspec.json.decode(stored)
    except msgspec.MsgspecError:
        return None
