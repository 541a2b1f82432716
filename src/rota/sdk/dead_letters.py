"""The dead-letter queue: failed executions that were neither replayed nor discarded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from rota.domain.errors import DefinitionError, UnknownExecution
from rota.ids import LAST_ID, is_id
from rota.sdk.client import Client
from rota.sdk.handle import Handle, ResultTypes
from rota.sdk.options import instant
from rota.store.reader import Filter
from rota.views.dead_letter import DeadLetter

PAGE = 500
Letters = list[DeadLetter]  # In the class `list` is a method.


class DeadLetters:
    """List, replay and discard; the filters are those of `list`."""

    def __init__(self, client: Client, result_types: ResultTypes) -> None:
        self._client = client
        self._result_types = result_types

    def list(
        self,
        *,
        job: str | None = None,
        queue: str | None = None,
        reason: str | None = None,
        error: str | None = None,
        since: datetime | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> Letters:
        """Newest first. `error` is a part of the error's text; `before` is the last id of the page before, or None."""
        wanted = Filter(
            job=job,
            queue=queue,
            error=error,
            since=None if since is None else instant(since, "since"),
            before=LAST_ID if before is None else before,
            limit=limit,
        )
        return self._client.dead_letters(wanted, reason)

    def replay(self, ids: Iterable[str]) -> Iterator[Handle[Any]]:
        """Runs each again as a new execution, page by page; ids that are not dead letters are skipped."""
        return self._replayed(_checked(ids))

    def _replayed(self, ids: Sequence[str]) -> Iterator[Handle[Any]]:
        for page in _pages(ids):
            for id in self._client.replay(page):
                yield Handle(self._client, id, self._result_types)

    def discard(self, ids: Iterable[str]) -> int:
        """Takes each off the list and returns how many were on it; the executions and their attempts stay."""
        return sum(self._client.discard(page) for page in _pages(_checked(ids)))


def _checked(ids: Iterable[str]) -> Sequence[str]:
    """Refuses texts that are not ids, before anything is done."""
    if isinstance(ids, str):
        raise DefinitionError(f"ids must be a list of ids, such as [{ids[:64]!r}], not one text")
    listed = list(ids)
    for id in listed:
        if not (isinstance(id, str) and is_id(id)):
            raise UnknownExecution(f"{str(id)[:64]!r} is not an id of an execution; nothing was done")
    return listed


def _pages(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), PAGE):
        yield ids[start : start + PAGE]
