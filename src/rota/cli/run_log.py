"""The supervisor's log of runs that failed, at most `MOST_PER_SECOND`; with --verbose of every run that ended.

After each commit of this process, the store sends hints to its bus. `RunLog` wraps the bus: it takes the ended runs
from the hints and reads how they ended. A run that another process ends is logged by that process only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence

import msgspec

from rota.cli.outcome_log import MOST_ERROR, MOST_PER_SECOND, MOST_RESULT
from rota.cli.text import clipped, harmless, short_id
from rota.domain.errors import StoreError
from rota.domain.outcome import Error
from rota.domain.status import Status
from rota.store.hints import Ended, Hint, Listener
from rota.store.port import Store
from rota.store.reader import RunEnd, ends_of_runs

log = logging.getLogger("rota.runs")

_decode_error = msgspec.json.Decoder(Error).decode


class RunLog:
    """Implements `rota.store.hints.Bus`."""

    def __init__(self, store: Store, *, verbose: bool) -> None:
        """Called on the event loop. Replaces the bus of the store by itself."""
        self._store, self._verbose = store, verbose
        self._bus, store.bus = store.bus, self
        self._loop = asyncio.get_running_loop()
        self._ended: list[str] = []
        self._logged = 0
        """How many runs have ended in this second."""
        self._left_out = 0
        """How many of these runs are not logged."""
        self._task: asyncio.Task[None] | None = None

    def send(self, hints: Sequence[Hint]) -> None:
        """Called in the threads of the store."""
        self._bus.send(hints)
        ended = {id: status for hint in hints if isinstance(hint, Ended) for id, status in hint.runs.items()}
        wanted = [id for id, status in ended.items() if self._verbose or status == Status.FAILED]
        if wanted:
            with contextlib.suppress(RuntimeError):  # The loop is closed: the worker has stopped.
                self._loop.call_soon_threadsafe(self._add, wanted)

    def listen(self, *kinds: type[Hint]) -> Listener:
        return self._bus.listen(*kinds)

    def close(self) -> None:
        self._bus.close()

    def _add(self, ids: list[str]) -> None:
        if self._logged == 0:
            self._loop.call_later(1.0, self._begin_second)
        room = len(ids) if self._verbose else max(0, MOST_PER_SECOND - self._logged)
        self._logged += len(ids)
        self._left_out += len(ids[room:])
        self._ended += ids[:room]
        if self._ended and self._task is None:
            self._task = self._loop.create_task(self._write())

    def _begin_second(self) -> None:
        left_out, self._left_out, self._logged = self._left_out, 0, 0
        if left_out:
            log.warning("%d more runs failed within a second: `rota runs` lists them", left_out)

    async def _write(self) -> None:
        while self._ended:
            ids, self._ended = self._ended, []
            with contextlib.suppress(StoreError):  # The database cannot be read now: `rota runs` shows the ends later.
                for end in await asyncio.to_thread(self._store.read, ends_of_runs, ids):
                    log.log(logging.ERROR if end.status == Status.FAILED else logging.INFO, "%s", line(end))
        self._task = None


def line(end: RunEnd) -> str:
    """`batch …9f2f2daa failed: step publish failed: RuntimeError: no network`."""
    about = ""
    if end.error is not None:
        about = f": {clipped(_decode_error(end.error).message, MOST_ERROR)}"
    elif end.status == Status.SUCCESS and end.result not in (None, "null"):
        about = f" {clipped(end.result or '', MOST_RESULT)}"
    verb = "succeeded" if end.status == Status.SUCCESS else end.status
    return harmless(f"{end.job} {short_id(end.id)} {verb}{about}")
