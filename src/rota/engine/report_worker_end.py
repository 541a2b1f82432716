"""Reports the end of a worker process to the store."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from rota.domain.errors import StoreError
from rota.domain.status import Reason
from rota.engine.loop import FIRST_BACKOFF_S, LONGEST_BACKOFF_S
from rota.engine.port import SupervisorStore, WorkerStore
from rota.ops.finish import Finished
from rota.ops.fleet import Death

log = logging.getLogger("rota.engine")

LAST_WORD_S = 10.0


async def report_leave(store: SupervisorStore, worker: int, port: WorkerStore, blocked: Finished | None) -> None:
    """Reports an orderly exit. If the database cannot be reached, the worker's lease runs out instead.

    `port` is the port of that worker. `blocked` is the outcome of an attempt that blocked the event loop beyond its
    timeout, if there is one. The other executions of that process return to the queue.
    """
    if blocked is not None:
        log.error("execution %s blocked the event loop beyond its timeout; its process is replaced", blocked.id)
        with contextlib.suppress(TimeoutError, StoreError):
            async with asyncio.timeout(LAST_WORD_S):
                await port.finish([blocked])
    with contextlib.suppress(StoreError):
        await store.leave(worker)


async def report_death(store: SupervisorStore, worker: int, cause: str | None, stopping: asyncio.Event) -> None:
    """Declares the worker dead, or gives its executions back without counting a crash if there is no cause.

    Repeated until the store has written it: otherwise the worker is rescued after its lease, and a rescue always
    treats its end as a crash.
    """
    if cause is not None:
        log.error("%s", cause)
    backoff_s = FIRST_BACKOFF_S
    while True:
        try:
            if cause is not None:
                death = await store.declare_dead(worker, cause)
                log_failures(death)
                if returned := death.executions - len(death.failures):
                    log.warning("%d of its executions returned to the queue", returned)
            else:
                await store.leave(worker, Reason.LEASE_LOST)
        except StoreError:
            if stopping.is_set():
                return
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), backoff_s)
            backoff_s = min(LONGEST_BACKOFF_S, 2 * backoff_s)
        else:
            return


def log_failures(death: Death) -> None:
    """Logs each execution that failed for good with its worker: the worker itself cannot."""
    for one in death.failures:
        log.error("execution %s of job %s has failed with its worker process: %s", one.id, one.job, one.reason)
