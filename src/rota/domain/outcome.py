"""The outcome of one attempt, as a value. Executors make these; the lifecycle decides what follows."""

from __future__ import annotations

import msgspec

from rota.domain.status import Reason


class Excerpt(msgspec.Struct, frozen=True, gc=False):
    """Lines of a file of the user's code around the one in a traceback."""

    file: str
    line: int
    """The line in the traceback."""
    first: int
    """The number of the first of `lines`."""
    lines: list[str]


class Error(msgspec.Struct, frozen=True, gc=False):
    """A failure as it is kept: already cleaned and bounded."""

    type: str
    message: str
    traceback: str = ""
    source: list[Excerpt] | msgspec.UnsetType = msgspec.UNSET
    """The lines around the user's own frames of the traceback; not given if there are none."""


class Succeeded(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    """The body returned; `result` is JSON text."""

    result: str = "null"


class Failed(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    """The body raised. `retry_in_s` overrides the policy's delay; `permanent` forbids another attempt."""

    error: Error
    reason: Reason = Reason.ERROR
    permanent: bool = False
    retry_in_s: float | None = None


class TimedOut(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    """A timer ran out: the attempt's own (retried) or the total one (not retried)."""

    error: Error
    total: bool = False


class Cancelled(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    """The body stopped because it was asked to."""


class Snoozed(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    """The body asked to run again later; no attempt is counted."""

    delay_s: float


class GivenBack(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    """The worker returned the attempt unfinished, by no fault of the job; no attempt is counted."""

    reason: Reason
    delay_s: float = 0.0
    error: Error | None = None
    """Why the attempt could not be carried through, if there is more to say than the reason."""


class Lost(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    """The worker died. If it ran several executions (`shared`), the guilty one is unknown and none is charged."""

    error: Error
    shared: bool = False


class Expired(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    """The start deadline passed before the body was started."""


Outcome = Succeeded | Failed | TimedOut | Cancelled | Snoozed | GivenBack | Lost | Expired
