"""Order edges: `job.after(…)`, and the rule by which they are judged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from rota.domain.workflow.reference import RESERVED
from rota.domain.workflow.rules import RULES
from rota.sdk.workflow import build as builds
from rota.sdk.workflow.build import Build, Pending
from rota.sdk.workflow.templates import template_of
from rota.sdk.workflow.value import as_value, reference_of

Rule = Literal[
    "all_success",
    "all_done",
    "all_failed",
    "one_success",
    "one_failed",
    "one_done",
    "none_failed",
    "none_failed_min_one_success",
    "all_done_min_one_success",
    "none_skipped",
    "all_skipped",
    "always",
]


class After(NamedTuple):
    """The steps that a step starts after: the result of `after(…)`, before the step itself is added."""

    build: Build
    names: tuple[str, ...]
    rule: str
    pending: Pending

    @classmethod
    def of(cls, before: After | None, name: str, verb: str, steps: Iterable[object], rule: Rule) -> After:
        """`before` has the steps of an earlier `after(…)` in the same chain of calls. `verb` is the call that adds the
        step and must follow, such as `.step(…)`."""
        build = builds.required(f"{name}.after(…)")
        if rule not in RULES:
            build.refuse(f"there is no rule {rule!r}: it is one of {', '.join(RULES)}")
        found = tuple(dict.fromkeys(step_name(build, step, "after(…)") for step in flattened(steps)))
        if not found:
            build.refuse("after(…) takes the steps to wait for")
        if before is not None and before.build is build:
            if before.rule != rule:
                build.refuse(f"the step has one rule: it cannot be both {before.rule!r} and {rule!r}")
            before.pending.is_used = True
            found = tuple(dict.fromkeys([*before.names, *found]))
        pending = Pending(build, f"`{verb}` is missing: write {name}.after(…){verb}")
        return cls(build, found, rule, pending)

    def fields(self, build: Build) -> dict[str, Any]:
        """The fields that these order edges give to the step."""
        if self.build is not build:
            build.refuse("after(…) was called in another build: call it in the function of this workflow")
        self.pending.is_used = True
        return {"after": self.names, "rule": self.rule}


def step_name(build: Build, value: object, what: str) -> str:
    """The name of the step whose value this is."""
    known = as_value(value)
    reference = None if known is None else reference_of(known)
    if known is None or reference is None or reference.root in RESERVED:
        build.refuse(f"{what} takes steps, such as the value of job.step(…), not {value!r}")
    template_of(known, build, what)  # Refuses a value of another build.
    return reference.root


def flattened(steps: Iterable[object]) -> list[object]:
    return [one for step in steps for one in (step if isinstance(step, list | tuple) else [step])]
