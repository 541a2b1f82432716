"""Random workflows in the data form, and their runs in a random order of ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import msgspec

from rota.domain.workflow.advance import advance
from rota.domain.workflow.graph import Graph, decode, to_data
from rota.domain.workflow.letters import is_over, with_ends
from tests.workflow.oracle import Data

OUTCOMES = {"s": "success", "f": "failed", "c": "cancelled", "k": "skipped", "b": "blocked"}
LETTERS = {outcome: letter for letter, outcome in OUTCOMES.items()}
RULES = [
    *("all_success", "all_done", "all_failed", "all_skipped", "always", "one_success", "one_failed", "one_done"),
    *("none_failed", "none_failed_min_one_success", "all_done_min_one_success", "none_skipped"),
]
RUNS_EARLY = {"one_success": "s", "one_failed": "fcb", "one_done": "sfcb"}
"""The rules that may start a step while upstreams are open, and the letters of which they need one."""
VALUES: list[Any] = [{"n": 1}, {"n": 2}, {"n": 3}, {"n": True}, {"n": None}, {"n": "text"}, {"n": [1, 2]}, {}, 7]


def workflow(random: Random, **fields: Any) -> Data:
    """The order of the steps means nothing, so they are shuffled."""
    names = [f"s{number}" for number in range(random.randint(1, 8))]
    steps = [_step(random, name, names[:number]) for number, name in enumerate(names)]
    random.shuffle(steps)
    return {"name": "random", "steps": steps, **fields}


def graph(data: Data) -> Graph:
    return decode(msgspec.json.encode(data))


def content(graph: Graph) -> str:
    """The graph as canonical JSON."""
    return msgspec.json.encode(to_data(graph), order="sorted").decode()


def endings(random: Random, data: Data) -> dict[str, str]:
    """How each step ends if it runs."""
    likely = random.choice(
        [["success"], ["success", "failed"], ["success", "success", "failed", "cancelled", "skipped"]]
    )
    return {step["id"]: random.choice(likely) for step in data["steps"]}


def values(random: Random, data: Data) -> dict[str, Any]:
    likely = VALUES[: random.choice([3, len(VALUES)])]
    return {step["id"]: random.choice(likely) for step in data["steps"]} | {"input": {"n": 2}, "run": {"id": "r"}}


def named(part: Any) -> Iterator[str]:
    """Every step that a template or condition names."""
    if isinstance(part, list):
        for one in part:
            yield from named(one)
    elif isinstance(part, dict):
        for key, one in part.items():
            if key in ("$", "$outcomes", "succeeded", "failed", "skipped"):
                yield one.split(".")[0]
            elif key not in ("$literal", "$text"):
                yield from named(one)


def upstream(step: Data) -> set[str]:
    """The steps that a step names other than in `after`."""
    event = step.get("event", {})
    waits = [step.get("approve", {}).get("text"), event.get("subject"), event.get("where")]
    parts = [*step.get("with", {}).values(), step.get("map"), *waits, *step.get("when", [])]
    return set(named(parts)) - {"input", "run"}


class Play:
    """A run whose steps end in a random order, several at once or one by one."""

    def __init__(
        self, random: Random, data: Data, would: dict[str, str], known: dict[str, Any], letters: str = ""
    ) -> None:
        self.random, self.data, self.would, self.known = random, data, would, known
        self.graph = graph(data)
        self.steps: list[Data] = data["steps"]
        self.letters = letters or "." * len(self.steps)
        self.is_stopping = False
        self.advance(None)

    def to_end(self, stop: Callable[[], bool] = lambda: False) -> dict[str, str]:
        while not is_over(self.letters):
            if stop():
                self.is_stopping = True
                self.advance(self.random.choice([None, []]))
                continue
            running = [number for number, letter in enumerate(self.letters) if letter == "o"]
            assert running, f"the run never ends: {self.letters}"
            ended = self.random.sample(running, self.random.randint(1, len(running)))
            self.letters = with_ends(self.letters, {one: LETTERS[self.would[self.name(one)]] for one in ended})
            self.advance(self.random.choice([None, ended]))
        return self.outcomes()

    def outcomes(self) -> dict[str, str]:
        return {
            self.name(one): OUTCOMES[letter] for one, letter in enumerate(self.letters.lower()) if letter in OUTCOMES
        }

    def name(self, number: int) -> str:
        return str(self.steps[number]["id"])

    def advance(self, changed: list[int] | None) -> None:
        before = self.letters
        after = advance(self.graph, before, self.value, is_stopping=self.is_stopping, changed=changed)
        assert all(new == old for old, new in zip(before, after.letters, strict=True) if old != ".")
        assert after.start == tuple(
            one for one, (old, new) in enumerate(zip(before, after.letters, strict=True)) if old == "." and new == "o"
        )
        self.letters = after.letters
        for number in after.start:
            self.check_start(self.steps[number])
        again = advance(self.graph, self.letters, self.value, is_stopping=self.is_stopping)
        assert again.letters == self.letters, "something was left undecided"

    def check_start(self, step: Data) -> None:
        """A step starts when its upstreams have ended, except those in `after` of an early rule."""
        now = {self.name(number): letter for number, letter in enumerate(self.letters.lower())}
        pending = {name for name in upstream(step) if now[name] in ".o"}
        after = [now[name] for name in step.get("after", [])]
        if not any(letter in RUNS_EARLY.get(step.get("rule", ""), "") for letter in after):
            pending |= {name for name in step.get("after", []) if now[name] in ".o"}
        assert not pending, f"{step} started before the end of {pending}"

    def value(self, root: str) -> Any:
        letters = dict(zip((step["id"] for step in self.steps), self.letters.lower(), strict=True))
        assert letters.get(root, "s") == "s", f"{root} did not succeed and has no value"
        return self.known[root]


def _step(random: Random, name: str, earlier: list[str]) -> Data:
    step: Data = {"id": name, "job": "j", "may_fail": random.random() < 0.2}
    if earlier:
        step["with"] = {f"p{number}": _template(random, earlier) for number in range(random.choice([0, 0, 1, 1, 2]))}
        step["after"] = random.sample(earlier, random.randint(0, min(3, len(earlier))))
        step["rule"] = random.choice(RULES)
        step["when"] = [_condition(random, earlier) for _ in range(random.choice([0, 0, 1, 2]))]
        if random.random() < 0.2:
            step["map"] = _reference(random, earlier)
    if random.random() < 0.2:
        _make_wait(random, step, earlier)
    return step


def _make_wait(random: Random, step: Data, earlier: list[str]) -> None:
    for name in ("job", "with", "map"):
        step.pop(name, None)

    def value() -> Any:
        return _template(random, earlier) if earlier else "a"

    waits = {
        "sleep": "1h",
        "approve": {"text": value(), "timeout": "1h", "required": random.random() < 0.5},
        "event": {"names": ["a"], "subject": value(), "where": {"n": value()}, "timeout": 1},
    }
    kind = random.choice(list(waits))
    step[kind] = waits[kind]


def _reference(random: Random, earlier: list[str]) -> Data:
    return {"$": f"{random.choice([*earlier, *earlier, 'input'])}.n"}


def _first(random: Random, earlier: list[str]) -> Data:
    return {"$first": [_reference(random, earlier) for _ in range(random.randint(1, 3))]}


def _operand(random: Random, earlier: list[str]) -> Any:
    match random.randint(0, 6):
        case 0:
            return _first(random, earlier)
        case 1:
            return {"$default": [_reference(random, earlier), random.choice([1, 2, _reference(random, earlier)])]}
        case 2:
            return {"$default": [_first(random, earlier), random.choice([1, "text"])]}
        case _:
            return _reference(random, earlier)


def _template(random: Random, earlier: list[str]) -> Any:
    match random.randint(0, 7):
        case 0:
            return {"$outcomes": random.choice(earlier)}
        case 1:
            return {"$text": "of {day}", "day": _operand(random, earlier)}
        case 2:
            return {"plain": [1, _operand(random, earlier)]}
        case 3:
            return {"$literal": {"$": random.choice(earlier)}}
        case _:
            return _operand(random, earlier)


def _condition(random: Random, earlier: list[str], depth: int = 0) -> Data:
    match random.randint(0, 8 if depth < 2 else 5):
        case 0 | 1:
            return {random.choice(["succeeded", "failed", "skipped"]): random.choice(earlier)}
        case 2 | 3:
            name = random.choice(["eq", "ne", "lt", "le", "gt", "ge"])
            return {name: [_operand(random, earlier), random.choice([1, 2, 2, "text", _operand(random, earlier)])]}
        case 4:
            return {"in": [_operand(random, earlier), random.choice([[1, 2], _operand(random, earlier)])]}
        case 5:
            return {random.choice(["is_none", "is_true"]): _operand(random, earlier)}
        case 6:
            return {"not": _condition(random, earlier, depth + 1)}
        case _:
            several = [_condition(random, earlier, depth + 1) for _ in range(random.randint(1, 3))]
            return {random.choice(["all", "any"]): several}
