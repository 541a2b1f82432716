"""SQLite and PostgreSQL give the same answers, send the same hints and keep the same rows."""

from __future__ import annotations

import os

import pytest

from rota.store import statements
from rota.store.postgres import session as postgres_session
from rota.store.postgres.url import DEFAULT_SCHEMA
from tests.differential.duel import Disagreement, duel
from tests.support.proving import sampled

SEEDS = int(os.environ.get("ROTA_DUELS", "16"))
"""A long run sets ROTA_DUELS."""
STEPS = 300
PLANTED = {
    "end_pending": ("fence, 1, ", "fence + 1, 1, "),
    "due": ("run_at <= :now", "run_at <= :now + 1000000"),
    "heads_of_jobs": ("x.id < h.after", "x.id <= h.after"),
}
"""Statements of PostgreSQL, and how to make each of them a little different from SQLite's."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", sampled(range(SEEDS), 3))
def test_both_databases_agree(seed: int) -> None:
    answered = duel(seed, STEPS)
    assert sum(answered.values()) == STEPS
    assert answered["claim answered"] > 5
    assert answered["finish answered"] > 5


def _duels() -> None:
    for seed in range(SEEDS):
        duel(seed, STEPS)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", sampled(PLANTED, 1))
def test_a_planted_difference_is_noticed(name: str) -> None:
    old, new = PLANTED[name]
    texts = statements.load("postgres", DEFAULT_SCHEMA)
    before = texts[name]
    texts[name] = tuple(text.replace(old, new) for text in before)
    assert texts[name] != before, f"statement {name} has changed: plant the difference anew"
    postgres_session.load.cache_clear()
    try:
        with pytest.raises(Disagreement):
            _duels()
    finally:
        texts[name] = before
        postgres_session.load.cache_clear()
