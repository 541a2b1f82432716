"""The trigger rules: the code is what the table in the documentation says, and no early decision can be wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from rota.domain.workflow.rules import RULES, decide_join
from tests.docs import pages
from tests.workflow import graphs
from tests.workflow.oracle import rule_says

TABLE = {row[0].strip("`"): row[1:] for row in pages.table("docs/workflow-rules.md", "Trigger rules")}
WORDS = {"o": "runs", "k": "skipped", "b": "blocked"}


def counts(n: int) -> Iterator[tuple[int, int, int]]:
    """Every s, k and b of n upstreams, of which some may not have ended."""
    return ((s, k, b) for s in range(n + 1) for k in range(n + 1 - s) for b in range(n + 1 - s - k))


def is_true(text: str, s: int, k: int, b: int, n: int) -> bool:
    """Whether a cell such as `all ended, s + b > 0` holds."""

    def holds(part: str) -> bool:
        if part == "all ended":
            return s + k + b == n
        left, relation, right = re.fullmatch(r"([skb+ ]+) ([=>]) (0|n)", part).groups()  # type: ignore[union-attr]
        total = sum({"s": s, "k": k, "b": b}[letter] for letter in left.split(" + "))
        other = n if right == "n" else 0
        return total == other if relation == "=" else total > other

    return all(holds(part) for part in text.split(", "))


def documented(rule: str, s: int, k: int, b: int, n: int) -> str:
    runs, otherwise, early = TABLE[rule]
    if n and s + k + b < n and (early == "–" or not is_true(early, s, k, b, n)):
        return "undecided"
    if n == 0 or is_true(runs, s, k, b, n):
        return "runs"
    if ": " not in otherwise:
        return otherwise
    bad, skipped = re.fullmatch(r"b > 0: (\w+); else (\w+)", otherwise).groups()  # type: ignore[union-attr]
    return str(bad if b > 0 else skipped)


def test_the_table_has_every_rule() -> None:
    assert list(TABLE) == list(RULES)
    assert set(graphs.RULES) == set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_rule_is_as_documented(rule: str) -> None:
    for n in range(6):
        for s, k, b in counts(n):
            assert WORDS.get(decide_join(rule, s, k, b, n), "undecided") == documented(rule, s, k, b, n), (s, k, b, n)


@pytest.mark.parametrize("rule", RULES)
def test_early_decision_is_what_any_further_ends_would_give(rule: str) -> None:
    for n in range(1, 6):
        for s, k, b in counts(n):
            decided = decide_join(rule, s, k, b, n)
            rest = n - s - k - b
            ends = {decide_join(rule, s + x, k + y, b + z, n) for x, y, z in counts(rest) if x + y + z == rest}
            assert decided == "." or ends == {decided}


@pytest.mark.parametrize("rule", RULES)
def test_rule_is_what_the_oracle_says_in_words(rule: str) -> None:
    for n in range(6):
        for s, k, b in counts(n):
            if s + k + b == n:
                upstreams = ["success"] * s + ["skipped"] * k + ["blocked"] * b
                assert WORDS[decide_join(rule, s, k, b, n)] == rule_says(rule, upstreams)
