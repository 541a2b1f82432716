"""A job's definition as data, and the version that its content makes."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from rota.domain import rank
from rota.domain.dependency import Upstream
from rota.domain.requirement import Needs
from rota.domain.subscription import Subscribes


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a job that is data. Two equal definitions are the same version."""

    name: str
    queue: str = "default"
    priority: int = 0
    retry: dict[str, Any] = {}
    timeout_s: float | None = None
    total_timeout_s: float | None = None
    progress_timeout_s: float | None = None
    slice_s: float | None = None
    start_within_s: float | None = None
    parameters: dict[str, Any] = {}
    description: str = ""
    needs: Needs = Needs()
    pause_after: int | None = None
    """The job is paused after this many failed executions in a row."""
    depends_on: list[Upstream] = []
    """The jobs whose ends start it, sorted."""
    arguments: str = "{}"
    """Its arguments when the end of such a job starts it, as JSON."""
    on: Subscribes | None = None
    """The events that start it."""
    target: dict[str, Any] = {}
    """The target by `kind` (a command, an HTTP request …); empty for a function."""

    @property
    def first_parameter(self) -> str | None:
        """The name of its first parameter; None if it has none that takes exactly one argument."""
        return next((name for name, one in self.parameters.items() if one.get("first")), None)

    @property
    def takes_others(self) -> bool:
        """Whether it also takes arguments of other names (`**kwargs`)."""
        return any(one.get("others") for one in self.parameters.values())


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue's own settings."""

    name: str
    policy: rank.Policy = rank.Policy.PRIORITY
    max_depth: int | None = None


decode = msgspec.json.Decoder(Definition).decode


def content(definition: Definition) -> str:
    """The definition as canonical JSON."""
    return msgspec.json.encode(definition, order="sorted").decode()


def digest(content: str) -> str:
    """The identity of a version."""
    return hashlib.sha256(content.encode()).hexdigest()
