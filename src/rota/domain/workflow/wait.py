"""Steps that wait: for a time, for a person's answer, or for an event.

Such a step is an execution that no worker runs. Its row stays in `waiting` until the store ends it: when its time is
over, or when the answer or the event has come. Its arguments are the fields of `Sleep`, `Approve` or `AwaitEvent`, with
the values of earlier steps in place of templates.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Literal

import msgspec

from rota.domain.blocker import Kind
from rota.domain.duration import seconds
from rota.domain.instant import MICROSECONDS
from rota.domain.outcome import Error
from rota.domain.status import Reason, Status

Template = Any
Length = float | int | str
"""A duration as it was written: seconds, or a text such as `3d`."""
OnNoAnswer = Literal["reject", "approve", "fail"]
OnNoEvent = Literal["fail", "skip"]


class Sleep(msgspec.Struct, frozen=True):
    """Waits until a duration has passed."""

    duration: Length


class Approve(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Waits for a person to approve or reject. In the graph of a workflow, `text` is a template."""

    text: Template
    who: tuple[str, ...] = ()
    """The names or roles of those who may answer."""
    timeout: Length
    on_timeout: OnNoAnswer = "reject"
    required: bool = False
    """Whether a rejection fails the step."""


class AwaitEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Waits for an event of one of these names. In the graph, `subject` and the values of `where` are templates."""

    names: tuple[str, ...]
    subject: Template = None
    where: dict[str, Template] | None = None
    lookback: Length | None = None
    """The wait also takes events that were emitted up to this long before the run opened."""
    timeout: Length
    on_timeout: OnNoEvent = "fail"


Wait = Sleep | Approve | AwaitEvent


class Decision(msgspec.Struct, frozen=True):
    """The answer to an approval. If no answer came in time, `timed_out` is true and `by` is None."""

    approved: bool
    by: str | None = None
    note: str = ""
    timed_out: bool = False


class Event(msgspec.Struct, frozen=True):
    """The event that a step has waited for."""

    id: str
    name: str
    subject: str | None
    payload: Any
    emitted_at: datetime


class Ending(msgspec.Struct, frozen=True):
    """How a wait ends. `result` is JSON text."""

    status: Status
    reason: Reason
    result: str | None = None
    error: Error | None = None


class WaitKind(msgspec.Struct, frozen=True):
    """A kind of wait: sleep, approval or event."""

    function: str
    """The function of `rota.workflow` that adds such a step. The step gets its name from the function."""
    field: str
    """The field of the step in the data form."""
    job: str
    """The value of the column `job` of its executions. No job can have this name."""
    blocker: Kind
    decode: Callable[[str], Wait]
    """Decodes the arguments of its executions."""


_KINDS: dict[type[Wait], WaitKind] = {
    Sleep: WaitKind("sleep", "sleep", "sleep()", Kind.SLEEP, msgspec.json.Decoder(Sleep).decode),
    Approve: WaitKind("approve", "approve", "approve()", Kind.APPROVAL, msgspec.json.Decoder(Approve).decode),
    AwaitEvent: WaitKind("wait_for_event", "event", "event()", Kind.EVENT, msgspec.json.Decoder(AwaitEvent).decode),
}
APPROVAL_JOB = _KINDS[Approve].job
FIELDS = tuple(kind.field for kind in _KINDS.values())
_by_job = {kind.job: kind for kind in _KINDS.values()}


def kind_of(wait: Wait) -> WaitKind:
    return _KINDS[type(wait)]


def is_wait(job: str) -> bool:
    """Whether an execution is a wait, by its column `job`."""
    return job in _by_job


def of_execution(job: str, arguments: str) -> Wait:
    """What an execution waits for, from its columns `job` and `arguments`."""
    return _by_job[job].decode(arguments)


def length(wait: Wait) -> Length:
    """How long it waits at most."""
    return wait.duration if isinstance(wait, Sleep) else wait.timeout


def ends_at(wait: Wait, now: int) -> int:
    """When a wait that begins now ends by itself."""
    return now + round(seconds(length(wait)) * MICROSECONDS)


def timed_out(wait: Wait) -> Ending:
    """How a wait ends when its time is over."""
    match wait:
        case Sleep():
            return Ending(Status.SUCCESS, Reason.COMPLETED, "null")
        case Approve(on_timeout="fail"):
            return _timeout_failure(f"no answer came within {words(wait.timeout)}: {wait.text}")
        case Approve():
            return answered(wait, Decision(wait.on_timeout == "approve", timed_out=True))
        case AwaitEvent(on_timeout="skip"):
            return Ending(Status.SKIPPED, Reason.WAIT_TIMEOUT)
        case AwaitEvent():
            return _timeout_failure(f"no event {' or '.join(wait.names)} came within {words(wait.timeout)}")


def answered(wait: Approve, decision: Decision) -> Ending:
    """How an approval ends with this answer."""
    result = msgspec.json.encode(decision).decode()
    if decision.approved or not wait.required:
        return Ending(Status.SUCCESS, Reason.COMPLETED, result)
    who = "because no answer came in time" if decision.timed_out else f"by {decision.by}"
    note = f": {decision.note}" if decision.note else ""
    return Ending(Status.FAILED, Reason.REJECTED, result, Error("Rejected", f"rejected {who}{note}"))


def event_came(event: dict[str, Any]) -> Ending:
    """How a wait for an event ends. `event` has the members of `Event`."""
    return Ending(Status.SUCCESS, Reason.COMPLETED, msgspec.json.encode(event).decode())


def words(value: Length) -> str:
    """A duration as it was written; a number is seconds."""
    return value if isinstance(value, str) else f"{value:g}s"


def _timeout_failure(message: str) -> Ending:
    return Ending(Status.FAILED, Reason.WAIT_TIMEOUT, None, Error("WaitTimeout", message))
