"""`this_run`: the run that is going to be, for arguments of steps."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

import msgspec

from rota.domain.workflow.reference import RUN
from rota.domain.workflow.schema import STRING
from rota.domain.workflow.types import RUN_INFO
from rota.sdk.workflow import build as builds
from rota.sdk.workflow.value import Symbol, Value


class RunInfo(msgspec.Struct, frozen=True):
    """What a run knows about itself. `scheduled_for` is the tick of its schedule, or the time it was asked for."""

    id: str
    workflow: str
    scheduled_for: datetime
    started_at: datetime


class _ThisRun:
    def __getattr__(self, name: str) -> Any:
        if name not in RUN_INFO["properties"]:
            known = ", ".join(RUN_INFO["properties"])
            raise AttributeError(f"this_run has no {name!r}: it has {known}")
        build = builds.required(f"this_run.{name}")
        return Value(Symbol(build, {"$": f"{RUN}.{name}"}, STRING))


this_run = cast("RunInfo", _ThisRun())
