"""Requests that Schemathesis makes from the served document: no error of the server, no answer outside the document."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.api.fuzzing import Fuzz, Target
from tests.api.server import serving
from tests.support.databases import fresh_database, fresh_file
from tests.support.proving import proof

SEED = 17


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("databases", "seed", "count", "least"),
    [("sqlite", SEED, 60, 30), *(proof("sqlite and postgres", seed, 12_000, 20_000) for seed in range(5))],
)
def test_every_answer_is_in_the_document(databases: str, seed: int, count: int, least: int, tmp_path: Path) -> None:
    """`make prove` sends 50,000 requests or more to each of the two databases.

    Some routes have fewer different requests than others, so fewer are sent than asked for.
    """
    urls = [fresh_file(tmp_path), *([fresh_database()] if "postgres" in databases else [])]
    with ExitStack() as stack, asyncio.Runner() as loop:
        targets = [loop.run(Target.of(stack.enter_context(serving(url)))) for url in urls]
        fuzz = Fuzz(targets, loop, seed)
        fuzz.run(count)
    assert not fuzz.defects, "\n\n".join(f"{key}\n{value}" for key, value in fuzz.defects.items())
    assert sum(fuzz.sent.values()) >= least
    assert {200, 201, 204, 400, 404, 422} <= fuzz.sent.keys(), fuzz.sent
