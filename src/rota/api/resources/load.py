"""The load, for autoscalers: how much work there is, and how many slots there are for it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from rota.api.answer import Answer, shown
from rota.api.call import Call
from rota.api.problem import bad_parameter
from rota.api.route import route
from rota.domain import duration
from rota.domain.access import Scope
from rota.domain.errors import DefinitionError
from rota.views import load as views
from rota.views.load import Load
from rota.views.load import Scope as Chosen

TARGET = "60s"


class LoadQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """`target` is the time in which the suggested slots should complete the waiting work, in seconds or as `90s`.

    `slots` are those of one worker, for the suggested number of workers; by default as live workers have.
    """

    app: str | None = None
    """Only this app."""
    queue: str | None = None
    """Only this queue."""
    pool: str | None = None
    """Only this pool."""
    target: str = TARGET
    """Within which time the suggested slots should work off what is ready, in seconds or as text."""
    slots: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] | None = None
    """How many executions one worker runs at once; by default as live workers do."""


@route("GET /load", Scope.READ, answer=Load)
async def load(call: Call, query: LoadQuery) -> Answer:
    """The waiting work, how busy workers are, and how many slots would do."""
    chosen = Chosen(query.app, query.queue, query.pool)
    usual = call.services.settings.concurrency
    return shown(await call.read(views.load, call.namespace, chosen, _target_s(query.target), query.slots, usual))


def _target_s(text: str) -> float:
    given = float(text) if text.isascii() and text.replace(".", "", 1).isdigit() and len(text) < 20 else text
    try:
        return duration.positive_seconds(given, "target")
    except DefinitionError as error:
        raise bad_parameter("target", str(error)) from None
