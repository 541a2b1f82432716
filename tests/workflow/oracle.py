"""A second opinion on runs: what the outcome of every step is, once all of them have ended.

It works on the data form, imports nothing of Rota, knows no letters and no early decisions. It looks at the whole graph
in any order of ends, because it never sees one: each outcome is defined by the outcomes of the upstream steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Data = dict[str, Any]
BAD = ("failed", "cancelled", "blocked")


class Unjudgeable(Exception):
    pass


class Oracle:
    """`would` says how each step ends if it runs, `values` what it then returns; `fixed` outcomes are given."""

    def __init__(
        self, steps: list[Data], would: Mapping[str, str], values: Mapping[str, Any], fixed: Mapping[str, str] = {}
    ) -> None:
        self.steps = {step["id"]: step for step in steps}
        self.would, self.values = would, values
        self.known = dict(fixed)

    def outcomes(self) -> dict[str, str]:
        return {name: self.outcome(name) for name in self.steps}

    def outcome(self, name: str) -> str:
        if name not in self.known:
            verdict = self.verdict(self.steps[name])
            self.known[name] = self.would[name] if verdict == "runs" else verdict
        return self.known[name]

    def verdict(self, step: Data) -> str:
        event = step.get("event", {})
        waits = [step.get("approve", {}).get("text"), event.get("subject"), event.get("where")]
        arguments = [self.needed(part) for part in [*step.get("with", {}).values(), step.get("map"), *waits]]
        verdicts = [all_must_succeed(arguments), rule_says(step.get("rule", "all_success"), self.of_after(step))]
        if "blocked" in verdicts:
            return "blocked"
        if "skipped" in verdicts:
            return "skipped"
        for condition in step.get("when", []):
            verdict = self.condition_says(condition)
            if verdict != "runs":
                return verdict
        return "runs"

    def of_after(self, step: Data) -> list[str]:
        return [self.outcome(name) for name in step.get("after", [])]

    # --- What templates need ----------------------------------------------------------------------

    def needed(self, template: Any) -> str:
        """How the values of a template are: success, skipped or bad."""
        if isinstance(template, list):
            return worst([self.needed(part) for part in template])
        if not isinstance(template, dict) or "$literal" in template or "$outcomes" in template:
            return "success"
        if "$" in template:
            return self.root(template["$"])
        if "$first" in template:
            several = [self.needed(one) for one in template["$first"]]
            return "success" if "success" in several else worst(several)
        if "$default" in template:
            return self.needed(template["$default"][1])
        return worst([self.needed(part) for key, part in template.items() if key != "$text"])

    def root(self, reference: str) -> str:
        name = reference.split(".")[0]
        if name in ("input", "run"):
            return "success"
        outcome = self.outcome(name)
        return "bad" if outcome in BAD else outcome

    # --- Conditions -------------------------------------------------------------------------------

    def condition_says(self, condition: Data) -> str:
        needed = self.condition_needs(condition)
        if needed != "success":
            return {"bad": "blocked", "skipped": "skipped"}[needed]
        try:
            return "runs" if self.is_true(condition) else "skipped"
        except Unjudgeable:
            return "failed"

    def condition_needs(self, condition: Data) -> str:
        [(name, operand)] = condition.items()
        if name in ("succeeded", "failed", "skipped"):
            return "success"
        if name == "not":
            return self.condition_needs(operand)
        if name in ("all", "any"):
            return worst([self.condition_needs(one) for one in operand])
        return self.needed(operand)

    def is_true(self, condition: Data) -> bool:
        [(name, operand)] = condition.items()
        if name == "succeeded":
            return self.outcome(operand) == "success"
        if name == "failed":
            return self.outcome(operand) in BAD
        if name == "skipped":
            return self.outcome(operand) == "skipped"
        if name == "not":
            return not self.is_true(operand)
        if name == "all":
            return all(self.is_true(one) for one in operand)
        if name == "any":
            return any(self.is_true(one) for one in operand)
        if name == "is_none":
            return self.value(operand) is None
        if name == "is_true":
            value = self.value(operand)
            if value is True or value is False:
                return value is True
            raise Unjudgeable
        left, right = map(self.value, operand)
        if name == "eq":
            return bool(left == right)
        if name == "ne":
            return bool(left != right)
        if name == "in":
            if type(right) is not list:
                raise Unjudgeable
            return left in right
        if {type(left), type(right)} not in ({int}, {float}, {int, float}, {str}):
            raise Unjudgeable
        ordered = {"lt": left < right, "le": left <= right, "gt": left > right, "ge": left >= right}
        return bool(ordered[name])

    def value(self, template: Any) -> Any:
        if isinstance(template, list):
            return [self.value(part) for part in template]
        if not isinstance(template, dict):
            return template
        if "$default" in template:
            choice, other = template["$default"]
            return self.value(choice) if self.needed(choice) == "success" else self.value(other)
        if "$first" in template:
            return self.value(next(one for one in template["$first"] if self.needed(one) == "success"))
        name, *path = template["$"].split(".")
        value = self.values[name]
        for member in path:
            if type(value) is not dict or member not in value:
                raise Unjudgeable
            value = value[member]
        return value


def worst(of: list[str]) -> str:
    return next((one for one in ("bad", "skipped") if one in of), "success")


def all_must_succeed(of: list[str]) -> str:
    return {"bad": "blocked", "skipped": "skipped", "success": "runs"}[worst(of)]


def rule_says(rule: str, upstreams: list[str]) -> str:
    """Each rule in a sentence of its own, over the outcomes of upstreams that have all ended."""
    good = [one for one in upstreams if one == "success"]
    bad = [one for one in upstreams if one in BAD]
    skipped = [one for one in upstreams if one == "skipped"]
    if not upstreams:
        return "runs"
    blocked_if_bad = "blocked" if bad else "skipped"
    match rule:
        case "all_success":
            return "runs" if not bad and not skipped else blocked_if_bad
        case "all_done" | "always":
            return "runs"
        case "all_failed":
            return "skipped" if good or skipped else "runs"
        case "one_success":
            return "runs" if good else blocked_if_bad
        case "one_failed":
            return "runs" if bad else "skipped"
        case "one_done":
            return "runs" if good or bad else "skipped"
        case "none_failed":
            return "blocked" if bad else "runs"
        case "none_failed_min_one_success":
            return "runs" if good and not bad else blocked_if_bad
        case "all_done_min_one_success":
            return "runs" if good else blocked_if_bad
        case "none_skipped":
            return "skipped" if skipped else "runs"
        case "all_skipped":
            return "skipped" if good or bad else "runs"
        case _:
            raise AssertionError(rule)
