"""`on=`, `where=` and `debounce=` of jobs and workflows: the events that start them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rota.domain import event, event_filter
from rota.domain.duration import positive_seconds
from rota.domain.errors import DefinitionError
from rota.domain.subscription import Subscribes

MOST_NAMES = 20


def subscribes(options: Mapping[str, Any], job: str) -> Subscribes | None:
    """The subscription that the options of a job declare; None if no event starts it."""
    given = options.get("on")
    if given is None or given == ():
        for name in ("where", "debounce"):
            if options.get(name):
                raise DefinitionError(f"job {job!r}: {name}= needs on=, the events that start it: add on='order.paid'")
        return None
    if not isinstance(given, Iterable) or isinstance(given, bytes | Mapping):
        raise DefinitionError(f"job {job!r}: on must be the name of an event, or a list of names, not {given!r}")
    names = sorted({event.check_name(one) for one in ([given] if isinstance(given, str) else given)})
    if not 0 < len(names) <= MOST_NAMES:
        raise DefinitionError(f"job {job!r}: on takes 1 to {MOST_NAMES} names of events, not {len(names)}")
    debounce = options.get("debounce")
    return Subscribes(
        names,
        dict(event_filter.check(options.get("where") or {}, f"job {job!r}")),
        None if debounce is None else positive_seconds(debounce, "debounce"),
    )
