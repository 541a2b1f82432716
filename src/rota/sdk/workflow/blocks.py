"""`with when(…):` and `with otherwise():`, whose steps run only if a condition holds."""

from __future__ import annotations

from types import TracebackType

from rota.domain.workflow import schema
from rota.domain.workflow.graph import Condition as ConditionData
from rota.domain.workflow.schema import BOOLEAN
from rota.sdk.workflow import build as builds
from rota.sdk.workflow.build import Build, Pending
from rota.sdk.workflow.templates import template_of
from rota.sdk.workflow.value import Condition, Value


class Block:
    """The steps in the block have the condition, and those of the blocks around it."""

    def __init__(self, build: Build, condition: ConditionData, name: str, *, may_have_otherwise: bool) -> None:
        self._build, self._condition = build, condition
        self._may_have_otherwise = may_have_otherwise
        self._pending = Pending(build, f"`with` is missing: write `with {name}(…):`")

    def __enter__(self) -> None:
        self._pending.is_used = True
        self._build.closed = None
        self._build.conditions.append(self._condition)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._build.conditions.pop()
        self._build.closed = self._condition if self._may_have_otherwise else None


def when(condition: bool) -> Block:
    """`with when(size.pages > 500):` runs the steps of the block only if the condition holds."""
    build = builds.required("when(…)")
    return Block(build, condition_of(condition, build, "when(…)"), "when", may_have_otherwise=True)


def otherwise() -> Block:
    """`with otherwise():` right after a `when` block runs its steps if the condition of that block does not hold."""
    build = builds.required("otherwise()")
    if build.closed is None:
        build.refuse("otherwise() stands right after the block of its `with when(…):`")
    return Block(build, {"not": build.closed}, "otherwise", may_have_otherwise=False)


def condition_of(condition: object, build: Build, what: str) -> ConditionData:
    """A condition as data; a value that is true or false is one too."""
    if type(condition) is Condition:
        if condition.__rota__.build is not build:
            build.refuse(f"the condition belongs to another build, of workflow {condition.__rota__.build.workflow!r}")
        return condition.__rota__.data
    if type(condition) is not Value:
        build.refuse(f"{what} takes a condition on values of steps; {condition!r} is known already: use a plain `if`")
    if not schema.fits(condition.__rota__.schema, BOOLEAN):
        words = schema.words(condition.__rota__.schema)
        build.refuse(f"{what} takes a condition, and this is {words}: compare it with a value, or use is_none(…)")
    return {"is_true": template_of(condition, build, what)}
