"""Asks both databases the same, step by step, until they disagree or the steps are done."""

from __future__ import annotations

import random
from typing import Any

from tests.differential.actions import Actions
from tests.differential.side import PostgresSide, Side, SqliteSide
from tests.support import statistics

STATE_EVERY = 50
MOST_TOLD = 12


class Disagreement(Exception):
    """Says after which steps, and what each side said."""


def duel(seed: int, steps: int) -> dict[str, int]:
    """How often each kind of action was answered; raises at the first disagreement."""
    sides: list[Side] = [SqliteSide(), PostgresSide()]
    try:
        return _fight(sides, Actions(random.Random(seed)), seed, steps)
    finally:
        for side in sides:
            side.close()


def _fight(sides: list[Side], actions: Actions, seed: int, steps: int) -> dict[str, int]:
    told: list[str] = []
    answered: dict[str, int] = {}
    todo = actions.first()
    for number in range(steps):
        what, ask = todo.pop(0) if todo else actions.draw()
        told.append(f"{number}: {what}")
        answers = [side.ask(ask) for side in sides]
        if answers[0] != answers[1]:
            raise Disagreement(
                _text(seed, told, [(side.name, answer) for side, answer in zip(sides, answers, strict=True)])
            )
        if number % STATE_EVERY == STATE_EVERY - 1 or number == steps - 1:
            _compare_states(sides, seed, told)
            todo += actions.every_look()
        kind = f"{what.split()[0]} {answers[0][0]}"
        answered[kind] = answered.get(kind, 0) + 1
        if answers[0][0] == "answered":
            actions.learn(answers[0][1])
    for side in sides:
        statistics.check(side.store)
    return answered


def _compare_states(sides: list[Side], seed: int, told: list[str]) -> None:
    first, second = (side.state() for side in sides)
    for table, rows in first.items():
        if rows != second[table]:
            left = [row for row in rows if row not in second[table]]
            right = [row for row in second[table] if row not in rows]
            raise Disagreement(
                _text(seed, told, [(f"{sides[0].name} {table}", left), (f"{sides[1].name} {table}", right)])
            )


def _text(seed: int, told: list[str], answers: list[tuple[str, Any]]) -> str:
    lines = [f"seed {seed} (replay it with: python -m tests.differential --seed {seed}), the last steps:"]
    lines += [f"  {line[:400]}" for line in told[-MOST_TOLD:]]
    return "\n".join(lines + [f"{name}: {answer}" for name, answer in answers])
