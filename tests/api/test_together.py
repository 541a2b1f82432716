"""Orders of different requests that are submitted as one."""

from __future__ import annotations

import asyncio

import pytest

from rota.api.together import Together
from rota.domain.errors import CommitUnknown, RotaError, UnknownJob
from rota.ops.submission import Accepted, Header, Item

HEADER = Header(namespace="default", app="shop", job="send", queue="mail")


class Store:
    """Takes submissions, and refuses those with the item `bad`."""

    def __init__(self, error: RotaError) -> None:
        self.submissions: list[list[str]] = []
        self.error = error

    async def submit(self, header: Header, items: list[Item]) -> list[Accepted]:
        ids = [item.id for item in items]
        self.submissions.append(ids)
        if "bad" in ids:
            raise self.error
        return [Accepted(id, True) for id in ids]

    async def accept(self, *ids: str) -> list[str]:
        """The answers to requests that come at once."""
        together = Together(self.submit)
        orders = (together.accept(HEADER, Item(id, "{}")) for id in ids)
        found = await asyncio.gather(*orders, return_exceptions=True)
        return [one.id if isinstance(one, Accepted) else type(one).__name__ for one in found]


async def test_a_refused_submission_is_repeated_one_by_one() -> None:
    store = Store(UnknownJob("no such job"))
    assert await store.accept("a", "bad", "b") == ["a", "UnknownJob", "b"]
    assert store.submissions == [["a", "bad", "b"], ["a"], ["bad"], ["b"]]


async def test_a_commit_in_doubt_is_not_repeated() -> None:
    store = Store(CommitUnknown("in doubt"))
    assert await store.accept("a", "bad") == ["CommitUnknown"] * 2
    assert store.submissions == [["a", "bad"]]


async def test_a_request_that_is_given_up_leaves_the_others_alone() -> None:
    store = Store(UnknownJob("no such job"))
    together = Together(store.submit)
    first, second = [asyncio.ensure_future(together.accept(HEADER, Item(id, "{}"))) for id in "ab"]
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).id == "b"
    with pytest.raises(asyncio.CancelledError):
        await first
