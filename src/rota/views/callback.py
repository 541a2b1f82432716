"""The callback of an execution, as the execution in full shows it."""

from __future__ import annotations

from rota.domain import callback
from rota.domain.status import Status
from rota.store.port import View
from rota.views.shape import Shape


class CallbackState(Shape, frozen=True):
    """The URL that is called at the end of an execution, and the status of the execution that calls it."""

    url: str
    on: list[Status]
    """The final statuses that it is called for."""
    status: Status | None
    """Null before the end, and if the end is none of `on`."""
    execution_id: str | None


def callback_state(view: View, namespace: str, id: str) -> CallbackState | None:
    """None for an execution without a callback."""
    row = view.one("callback_of", namespace=namespace, id=id)
    if row is None or row[0] is None:
        return None
    wanted = callback.decode(row[0])
    call = view.one("callback_call", namespace=namespace, parent=id, app=callback.APP, job=callback.JOB)
    status, caller = (None, None) if call is None else (Status(call[1]), str(call[0]))
    return CallbackState(wanted.url, list(wanted.on), status, caller)
