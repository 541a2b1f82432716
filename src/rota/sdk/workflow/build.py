"""The build of a workflow: records the steps while the workflow's function runs with symbolic values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType
from typing import Any, NoReturn

import msgspec

from rota.domain.errors import WorkflowError
from rota.domain.workflow.graph import MOST_STEPS, Condition, Step
from rota.domain.workflow.reference import RESERVED
from rota.sdk.workflow import place
from rota.sdk.workflow.place import Place

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class Pending:
    """Something that is useless unless it is used: `job.after(…)` without a step, `when(…)` without `with`."""

    def __init__(self, build: Build, hint: str) -> None:
        self.place = build.here()
        self.hint = hint
        self.is_used = False
        build.pending.append(self)


class Build:
    """One run of a workflow's function. The values that it hands out belong to it."""

    def __init__(self, app: str, workflow: str, code: CodeType | None) -> None:
        self.app, self.workflow, self.code = app, workflow, code
        self.steps: dict[str, Step] = {}
        self.places: dict[str, Place] = {}
        self.problems: list[WorkflowError] = []
        self._last_numbers: dict[str, int] = {}
        self.pending: list[Pending] = []
        self.conditions: list[Condition] = []
        """The conditions of the open blocks, outermost first."""
        self.closed: Condition | None = None
        """The condition of the `when` block that has just ended; `otherwise` may follow it."""

    def here(self) -> Place:
        return place.here(self.code)

    def note(self, message: str, at: Place | None = None) -> WorkflowError:
        """Records a problem. The function continues, so that one build finds several problems.

        Only the first one of a line is kept: further ones often follow from it.
        """
        error = (at or self.here()).error(self.workflow, message)
        if all((one.file, one.line) != (error.file, error.line) for one in self.problems):
            self.problems.append(error)
        return error

    def refuse(self, message: str) -> NoReturn:
        """Records a problem and raises it, where the function cannot continue."""
        raise self.note(message)

    @contextmanager
    def continuing(self) -> Iterator[None]:
        """Continues after the block if something in it was refused."""
        try:
            yield
        except WorkflowError:
            if not self.problems:
                raise

    def add(self, name: str | None, runs: str, fields: dict[str, Any]) -> str:
        """Records a step and returns its name."""
        if len(self.steps) >= MOST_STEPS:
            self.refuse(f"a workflow has at most {MOST_STEPS:,} steps: use job.map(…) over a list")
        if name is not None and name in self.steps:
            self.note(f"there is already a step {name!r}: give one of them another options(name=…)")
            name = None
        id = name if name is not None else self._free(_NOT_IN_NAMES.sub("_", runs))
        self.steps[id] = Step(id=id, when=tuple(self.conditions), **fields)
        self.places[id] = self.here()
        self.closed = None
        return id

    def order(self, before: str, after: str) -> None:
        """Adds an order edge between two steps."""
        step = self.steps[after]
        if before not in step.after:
            self.steps[after] = msgspec.structs.replace(step, after=(*step.after, before))

    def check_end(self) -> None:
        """Records what was left unused."""
        for one in self.pending:
            if not one.is_used:
                self.note(one.hint, one.place)

    def _free(self, base: str) -> str:
        if base not in self.steps and base not in RESERVED:
            return base
        number = self._last_numbers.get(base, 1) + 1
        while f"{base}_{number}" in self.steps:
            number += 1
        self._last_numbers[base] = number
        return f"{base}_{number}"


_current: ContextVar[Build | None] = ContextVar("rota_build", default=None)


def current() -> Build | None:
    return _current.get()


def required(what: str, instead: str = "") -> Build:
    """The build that is running; refuses `what` outside of one."""
    build = _current.get()
    if build is None:
        found = place.here(None)
        message = f"{what} is for the function of a workflow, under @app.workflow"
        shown = f"{place.shortened(found.file)}:{found.line}: `{found.expression}`: {message}"
        raise WorkflowError(f"{shown}; {instead}" if instead else shown, found.file, found.line, found.expression)
    return build


@contextmanager
def building(build: Build) -> Iterator[None]:
    token = _current.set(build)
    try:
        yield
    finally:
        _current.reset(token)
