"""Trigger rules: whether a step runs, judged by the outcomes of the steps in its `after`.

s, k and b count the upstreams that succeeded, were skipped and were bad (failed, cancelled or blocked); n is the number
of all. The judgement is a function of the counts alone, so the order of the ends never matters. A rule decides before
all upstreams have ended only where further ends cannot change its judgement. `docs/workflow-rules.md` has the table.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from rota.domain.workflow.letters import BLOCKED, OPEN, SKIPPED, UNDECIDED, counted

DEFAULT = "all_success"
ALWAYS = "always"


class Rule(msgspec.Struct, frozen=True):
    runs: Callable[[int, int, int, int], bool]
    """Whether the step runs, by s, k, b and n, once the rule decides."""
    early: Callable[[int, int, int], bool] = lambda s, k, b: False
    """Whether the rule decides by s, k and b so far."""
    blocks: bool = False
    """Whether a step that does not run is blocked when an upstream was bad. Otherwise it is skipped."""


RULES = {
    DEFAULT: Rule(lambda s, k, b, n: s == n, early=lambda s, k, b: b > 0, blocks=True),
    "all_done": Rule(lambda s, k, b, n: True),
    "all_failed": Rule(lambda s, k, b, n: b == n, early=lambda s, k, b: s + k > 0),
    "one_success": Rule(lambda s, k, b, n: s > 0, early=lambda s, k, b: s > 0, blocks=True),
    "one_failed": Rule(lambda s, k, b, n: b > 0, early=lambda s, k, b: b > 0),
    "one_done": Rule(lambda s, k, b, n: s + b > 0, early=lambda s, k, b: s + b > 0),
    "none_failed": Rule(lambda s, k, b, n: b == 0, early=lambda s, k, b: b > 0, blocks=True),
    "none_failed_min_one_success": Rule(lambda s, k, b, n: b == 0 and s > 0, early=lambda s, k, b: b > 0, blocks=True),
    "all_done_min_one_success": Rule(lambda s, k, b, n: s > 0, blocks=True),
    "none_skipped": Rule(lambda s, k, b, n: k == 0, early=lambda s, k, b: k > 0),
    "all_skipped": Rule(lambda s, k, b, n: k == n, early=lambda s, k, b: s + b > 0),
    ALWAYS: Rule(lambda s, k, b, n: True),
}


def judged(rule: str, upstreams: str) -> str:
    """The letter that a rule gives a step, by the lower-case letters of its upstreams; open means that it runs."""
    return decide_join(rule, *counted(upstreams), len(upstreams))


def decide_join(name: str, s: int, k: int, b: int, n: int) -> str:
    rule = RULES[name]
    if n == 0:
        return OPEN
    if s + k + b < n and not rule.early(s, k, b):
        return UNDECIDED
    if rule.runs(s, k, b, n):
        return OPEN
    return BLOCKED if rule.blocks and b > 0 else SKIPPED
