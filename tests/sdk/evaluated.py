"""Functions whose annotations are objects, not text: this file does without `from __future__ import annotations`."""

import datetime as dt
import typing
from typing import Optional

import rota


def evaluated(ctx: rota.Context, when: dt.datetime, note: Optional[str] = None) -> tuple[str, str, str]:  # noqa: UP045
    return ctx.job, type(when).__name__, note or ""


def unresolvable(value: "NoSuchName", other: int) -> list[typing.Any]:  # type: ignore[name-defined] # noqa: F821
    return [value, other]
