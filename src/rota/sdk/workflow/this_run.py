"""`this_run`: facts about the future run, for arguments of steps."""

from __future__ import annotations

from typing import Any, cast

from rota.domain.run_info import RunInfo
from rota.domain.workflow.reference import RUN
from rota.domain.workflow.schema import STRING
from rota.domain.workflow.types import RUN_INFO
from rota.sdk.workflow import build as builds
from rota.sdk.workflow.value import Symbol, Value


class _ThisRun:
    def __getattr__(self, name: str) -> Any:
        if name not in RUN_INFO["properties"]:
            known = ", ".join(RUN_INFO["properties"])
            raise AttributeError(f"this_run has no {name!r}: it has {known}")
        build = builds.required(f"this_run.{name}")
        return Value(Symbol(build, {"$": f"{RUN}.{name}"}, STRING))


this_run = cast("RunInfo", _ThisRun())
