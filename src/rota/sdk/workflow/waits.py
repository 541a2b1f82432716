"""Steps that wait: `sleep`, `approve` and `wait_for_event`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast

from rota.domain.duration import Duration, positive_seconds
from rota.domain.errors import DefinitionError
from rota.domain.workflow import wait as waits
from rota.domain.workflow.types import RESULTS
from rota.domain.workflow.wait import Approve, AwaitEvent, Decision, Event, Length, OnNoAnswer, OnNoEvent, Sleep, Wait
from rota.sdk.workflow import build as builds
from rota.sdk.workflow.build import Build
from rota.sdk.workflow.order import After, Rule
from rota.sdk.workflow.templates import template_of
from rota.sdk.workflow.value import Symbol, Value, as_value

P = ParamSpec("P")
T = TypeVar("T")


class WaitFunction(Generic[P, T]):
    """A function such as `sleep`. Each call adds a step that waits to the workflow that is being built, and returns a
    symbol for the value of the step."""

    def __init__(self, name: str, make: Callable[P, Wait], result: type[T]) -> None:
        """`make` returns what to wait for. `result` is the type of the step's value, for type checkers."""
        self.__name__ = name
        self.__doc__ = make.__doc__
        self.__wrapped__ = self._make = make
        self._after: After | None = None
        self._name: str | None = None
        self._may_fail = False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        build = builds.required(f"{self.__name__}(…)")
        wait = self._make(*args, **kwargs)
        fields: dict[str, Any] = {waits.kind_of(wait).field: wait.duration if isinstance(wait, Sleep) else wait}
        if self._after is not None:
            fields |= self._after.fields(build)
        if self._may_fail:
            fields["may_fail"] = True
        id = build.add(self._name, self.__name__, fields)
        return cast("T", Value(Symbol(build, {"$": id}, RESULTS[type(wait)])))

    def after(self, *steps: object, rule: Rule = "all_success") -> Self:
        """The same function for one step, which begins to wait when these steps have ended as `rule` says."""
        changed = copy.copy(self)
        changed._after = After.of(self._after, self.__name__, "(…)", steps, rule)
        return changed

    def options(self, *, name: str | None = None, may_fail: bool | None = None) -> Self:
        """The same function for a step with this name, or for one whose failure does not fail the run."""
        changed = copy.copy(self)
        changed._name = self._name if name is None else name
        changed._may_fail = self._may_fail if may_fail is None else may_fail
        return changed


def _sleep(duration: Duration) -> Sleep:
    """Waits until this time has passed, without a worker: `job.after(sleep("10m")).step(…)`."""
    return Sleep(_length(builds.required("sleep(…)"), duration, "the duration"))


def _approve(
    text: str,
    *,
    who: Iterable[str] = (),
    timeout: Duration,
    on_timeout: OnNoAnswer = "reject",
    required: bool = False,
) -> Approve:
    """Waits until a person approves or rejects, by `rota run approve` or `Run.approve`.

    `who` are the names or roles of those who may answer; they are shown, but not checked. If no answer comes within
    `timeout`, the step ends as `on_timeout` says: `reject`, `approve` or `fail`. With `required`, a rejection fails the
    step.
    """
    build = builds.required("approve(…)")
    return Approve(
        text=template_of(text, build, "the text"),
        who=_texts(build, who, "who"),
        timeout=_length(build, timeout, "timeout"),
        on_timeout=_one_of(build, on_timeout, ("reject", "approve", "fail")),
        required=required,
    )


def _wait_for_event(
    names: str | Iterable[str],
    *,
    subject: str | None = None,
    where: Mapping[str, Any] | None = None,
    lookback: Duration | None = None,
    timeout: Duration,
    on_timeout: OnNoEvent = "fail",
) -> AwaitEvent:
    """Waits for the first event with one of these names since the run opened, or since `lookback` before that.

    With `subject`, the event must have this subject; with `where`, its payload must match the filter. If no event comes
    within `timeout`, the step ends as `on_timeout` says: `fail` or `skip`.
    """
    build = builds.required("wait_for_event(…)")
    return AwaitEvent(
        names=_texts(build, [names] if isinstance(names, str) else names, "names"),
        subject=template_of(subject, build, "the subject"),
        where=None if where is None else template_of(dict(where), build, "where"),
        lookback=None if lookback is None else _length(build, lookback, "lookback"),
        timeout=_length(build, timeout, "timeout"),
        on_timeout=_one_of(build, on_timeout, ("fail", "skip")),
    )


def _length(build: Build, value: Duration, what: str) -> Length:
    if as_value(value) is not None:
        build.refuse(f"{what} must be known when the workflow is built, such as '10m', not {value!r}")
    try:
        positive_seconds(value, what)
    except DefinitionError as error:
        build.refuse(str(error))
    return value.total_seconds() if isinstance(value, timedelta) else value


def _texts(build: Build, values: Iterable[str], what: str) -> tuple[str, ...]:
    if isinstance(values, str) or as_value(values) is not None:
        build.refuse(f"{what}= takes a list of texts, not {values!r}")
    found = tuple(values)
    if not all(isinstance(one, str) for one in found):
        build.refuse(f"{what}= takes a list of texts, not {values!r}")
    return found


def _one_of(build: Build, value: T, known: tuple[T, ...]) -> T:
    if value not in known:
        build.refuse(f"on_timeout= is one of {', '.join(map(str, known))}, not {value!r}")
    return value


sleep = WaitFunction("sleep", _sleep, object)
approve = WaitFunction("approve", _approve, Decision)
wait_for_event = WaitFunction("wait_for_event", _wait_for_event, Event)
