"""A callback: the URL that is called at the end of an execution, and the ends that it is called for."""

from __future__ import annotations

import msgspec

from rota.domain import names
from rota.domain.errors import DefinitionError
from rota.domain.status import TERMINAL, Status

APP, JOB = "_rota", "_callback"
"""The job that calls back, in an app that is Rota's own."""
ENDS: tuple[Status, ...] = tuple(sorted(TERMINAL))


class Callback(msgspec.Struct, frozen=True):
    """A callback as it is stored with an execution."""

    url: str
    on: tuple[Status, ...] = ENDS


def encode(url: str, on: tuple[Status, ...] | None) -> str:
    return msgspec.json.encode(Callback(url, on or ENDS)).decode()


decode = msgspec.json.Decoder(Callback).decode


def is_reserved(app: str) -> bool:
    """Whether the jobs of this app are Rota's own: callers cannot enqueue them."""
    return app == APP


def check_app(name: str) -> str:
    """Refuses Rota's own app, in which a caller's definition could have its requests signed."""
    if is_reserved(name):
        raise DefinitionError(f"the app {name} has Rota's own jobs: choose another name")
    return names.check(name, "an app's name")
