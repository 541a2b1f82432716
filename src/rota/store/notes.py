"""What attempts told while they ran, as it is read. Of an execution of another namespace there is nothing to read."""

from __future__ import annotations

from rota.domain.errors import UnknownExecution
from rota.domain.note import Line, State
from rota.domain.status import Status
from rota.ids import is_id
from rota.store.port import View
from rota.store.reader import known

START = (0, 0)
"""Before the first line: fence and number count from 1."""


def lines(
    view: View,
    namespace: str,
    id: str,
    after: tuple[int, int] = START,
    most: int = 1000,
    attempt: int | None = None,
    stream: str | None = None,
) -> list[Line]:
    """Up to `most` lines behind `after`, which is the fence and the number of a line, in their order."""
    fence, number = after
    which = {"namespace": namespace, "id": id, "attempt": attempt, "stream": stream}
    return view.records("lines", Line, **which, fence=fence, number=number, most=most) if is_id(id) else []


def before_last(
    view: View, namespace: str, id: str, count: int, attempt: int | None = None, stream: str | None = None
) -> tuple[int, int]:
    """The place behind which the last `count` lines come."""
    which = {"namespace": namespace, "id": id, "attempt": attempt, "stream": stream}
    found = view.one("line_before_last", **which, count=count) if is_id(id) else None
    return START if found is None else (found[0], found[1])


def state(view: View, namespace: str, id: str) -> State | None:
    """What was last told of how it stands; None if nothing was."""
    found = view.records("state_told", State, namespace=namespace, id=id) if is_id(id) else []
    return found[0] if found else None


def progress(view: View, namespace: str, id: str) -> tuple[Status, int]:
    """The status, and the fence of the last attempt: whether there can be more lines."""
    found = view.one("progress", namespace=namespace, id=known(id))
    if found is None:
        raise UnknownExecution(f"there is no execution {id}")
    return Status(found[0]), found[1]


def usages(view: View, namespace: str, id: str) -> dict[int, str]:
    """What the attempts cost, as JSON by fence; only of those of which that is known."""
    return dict(view.rows("usages", namespace=namespace, id=id)) if is_id(id) else {}
