"""Enqueues of different requests as one submission.

For a small request, the way to the writer's thread and back costs more than all of its checks. So orders that share a
header and come in the same turn of the event loop take that way together. If the store refuses them, each one is
submitted by itself and gets its own answer, as if it had come alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from rota.domain.errors import RotaError, StoreUnavailable
from rota.ops.submission import Accepted, Header, Item

Submit = Callable[[Header, list[Item]], Awaitable[list[Accepted]]]


class _Group:
    """Items of one header, and the requests that wait for them."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.items: list[Item] = []
        self.waiting: list[asyncio.Future[Accepted]] = []


class Together:
    """The orders of this turn of the event loop. They must have no keys: two items may not answer for each other."""

    def __init__(self, submit: Submit) -> None:
        self._submit = submit
        self._groups: dict[int, _Group] = {}
        self._sending: set[asyncio.Task[None]] = set()

    async def accept(self, header: Header, item: Item) -> Accepted:
        loop = asyncio.get_running_loop()
        group = self._groups.get(id(header))
        if group is None:
            group = self._groups[id(header)] = _Group(header)
            loop.call_soon(self._send, group)
        answer: asyncio.Future[Accepted] = loop.create_future()
        group.items.append(item)
        group.waiting.append(answer)
        return await answer

    def _send(self, group: _Group) -> None:
        del self._groups[id(group.header)]
        task = asyncio.get_running_loop().create_task(self._answer(group))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _answer(self, group: _Group) -> None:
        try:
            accepted = await self._submit(group.header, group.items)
        except Exception as error:
            if len(group.items) > 1 and _may_be_of_one(error):
                await asyncio.gather(*(self._answer(one) for one in _apart(group)))
            else:
                _fail(group, error)
        else:
            for answer, one in zip(group.waiting, accepted, strict=True):
                if not answer.done():  # The request may have been given up.
                    answer.set_result(one)


def _may_be_of_one(error: Exception) -> bool:
    """Whether the others may fare better alone, and nothing was accepted."""
    return isinstance(error, RotaError) and not isinstance(error, StoreUnavailable)


def _apart(group: _Group) -> list[_Group]:
    groups = [_Group(group.header) for _ in group.items]
    for one, item, answer in zip(groups, group.items, group.waiting, strict=True):
        one.items.append(item)
        one.waiting.append(answer)
    return groups


def _fail(group: _Group, error: Exception) -> None:
    for answer in group.waiting:
        if not answer.done():
            answer.set_exception(error)
