"""Requests that Schemathesis makes from the served document: no error of the server, no answer outside the document."""

from __future__ import annotations

import asyncio

import pytest

from tests.api.fuzzing import Fuzz
from tests.api.server import Server
from tests.api.things import stage_of, things
from tests.support.proving import proof

SEED = 17


@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize(
    ("seed", "count", "least"), [(SEED, 200, 100), *(proof(seed, 11_000, 10_000) for seed in range(5))]
)
def test_every_answer_is_in_the_document(server: Server, seed: int, count: int, least: int) -> None:
    """`make prove` sends 50,000 requests or more to each of the two databases.

    Some routes have fewer different requests than others, so fewer are sent than asked for.
    """
    token = server.token(namespaces=("*",))

    async def known() -> dict[str, str]:
        async with server.client(token) as client:
            return await things(server, client, stage_of(server))

    with asyncio.Runner() as loop:
        fuzz = Fuzz(server, token, loop.run(known()), loop, seed)
        fuzz.run(count)
    assert not fuzz.defects, "\n\n".join(f"{key}\n{value}" for key, value in fuzz.defects.items())
    assert sum(fuzz.sent.values()) >= least
    assert {200, 201, 204, 400, 404, 422} <= fuzz.sent.keys(), fuzz.sent
