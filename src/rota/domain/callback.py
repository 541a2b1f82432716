"""A callback: the URL that is called at the end of an execution, and the ends that it is called for."""

from __future__ import annotations

import msgspec

from rota.domain import names
from rota.domain.errors import DefinitionError
from rota.domain.status import TERMINAL, Status

APP, JOB = "_rota", "_callback"
"""The job that calls back. Names with an underscore at the start of an app are Rota's own."""
ENDS: tuple[Status, ...] = tuple(sorted(TERMINAL))


class Callback(msgspec.Struct, frozen=True):
    """As it is stored with an execution."""

    url: str
    on: tuple[Status, ...] = ENDS


def encode(url: str, on: tuple[Status, ...] | None) -> str:
    return msgspec.json.encode(Callback(url, on or ENDS)).decode()


decode = msgspec.json.Decoder(Callback).decode


def is_reserved(app: str) -> bool:
    """Whether the jobs of this app are Rota's own: callers cannot enqueue them."""
    return app == APP


def check_app(name: str) -> str:
    """The name of an app in which callers may define jobs. In Rota's own a definition could use the signing job."""
    if is_reserved(name):
        raise DefinitionError(f"the app {name} has Rota's own jobs: choose another name")
    return names.check(name, "an app's name")
