"""Quotas: the most that a namespace may have, and the rate at which it may enqueue.

A rate is kept by the generic cell rate algorithm: one instant, at which everything that was admitted is paid for. Each
server admits its equal share, so the servers together admit at most one second's worth more than the rate.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from rota.domain.decoding import prepare

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**53)]


class Quotas(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", forbid_unknown_fields=True):
    """None is no limit. `burst` is how many executions may come at once; the default is one second's worth."""

    executions_per_s: Annotated[float, msgspec.Meta(gt=0, le=1e9)] | None = None
    """How many executions may be enqueued per second."""
    burst: Positive | None = None
    """How many executions may come at once; by default one second's worth."""
    max_depth: Count | None = None
    max_running: Count | None = None
    """How many executions may run at once."""
    max_jobs: Count | None = None
    """How many jobs there may be."""
    max_schedules: Count | None = None
    """How many schedules there may be."""
    max_payload_bytes: Positive | None = None
    """How many bytes of arguments an execution may have."""
    max_tokens: Count | None = None
    """How many tokens there may be."""
    max_streams: Count | None = None
    """How many streams may be open at once."""


prepare(Quotas)
NONE = Quotas()


def decode(text: str | None) -> Quotas:
    return NONE if text is None else msgspec.json.decode(text, type=Quotas)


def encode(quotas: Quotas) -> str | None:
    """The stored JSON; None without quotas."""
    return None if quotas == NONE else msgspec.json.encode(quotas).decode()


class Verdict(msgspec.Struct, frozen=True):
    """How many of the wanted ones are admitted; how many more would be now; when the next one would be, in seconds."""

    admitted: int
    left: int
    retry_after_s: float


class Bucket:
    """The rate of one namespace on one server."""

    def __init__(self) -> None:
        self._paid_at = float("-inf")

    def admit(self, now: float, wanted: int, rate: float, burst: float, *, partly: bool = False) -> Verdict:
        """Admits all of the wanted ones, or none; with `partly` as many as there is room for."""
        paid_at = max(self._paid_at, now)
        room = int(burst - (paid_at - now) * rate + 1e-9)
        admitted = wanted if wanted <= room else max(0, room) if partly else 0
        if admitted:
            paid_at += admitted / rate
            self._paid_at = paid_at
        left = max(0, room - admitted)
        short = 1 if partly else max(1, wanted)
        after_s = max(0.0, (paid_at - now) - (burst - min(short, burst)) / rate)
        return Verdict(admitted, left, after_s)
