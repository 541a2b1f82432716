"""`python -m benchmarks.herd beats|idle COUNT`: COUNT workers that share this process, until it is ended.

Each has a heart, as if it were alone on its machine; `idle` ones also look for work as a worker's child does. Unlike
workers on separate machines, they share the connections of this process.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from benchmarks.jobs import build
from rota.clock import Clock
from rota.domain.served import Served
from rota.engine.async_store import StoreCalls, SupervisorCalls
from rota.engine.heart import Heart
from rota.engine.worker_loops import Assignment, WorkerLoops
from rota.ops import fleet
from rota.ops.fleet import BEATS_PER_LEASE
from rota.sdk.app import registry_of

LEASE_S = 10.0
POLL_S = 1.0


async def main(what: str, count: int) -> None:
    app = build().app
    calls = StoreCalls(registry_of(app).connection.store())
    store = SupervisorCalls(calls, registry_of(app).connection.clock)
    members = [
        asyncio.create_task(_member(store, registry_of(app).connection.clock, number, count, what))
        for number in range(count)
    ]
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    ended = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait([ended, *members], return_when=asyncio.FIRST_COMPLETED)
    for task in (ended, *members):
        task.cancel()
    await asyncio.gather(ended, *members, return_exceptions=True)
    calls.close()
    app.close()
    if ended not in done:
        next(iter(done)).result()


async def _member(store: SupervisorCalls, clock: Clock, number: int, count: int, what: str) -> None:
    # Machines do not start at one instant: the beats are spread over the time between two of them.
    await asyncio.sleep(LEASE_S / BEATS_PER_LEASE * number / count)
    newcomer = fleet.Newcomer(
        namespace="default",
        app="bench",
        name=f"herd:{os.getpid()}:{number}",
        host="herd",
        pid=os.getpid(),
        version="",
        queues=None,
        jobs=[],
        concurrency=1,
    )
    sent_at = clock.monotonic()
    worker, waited_s = await store.join(newcomer, LEASE_S)
    heart = Heart(store, clock, LEASE_S, _lost)
    heart.add(worker, sent_at + waited_s)
    loops = [heart.loop.run(), heart.watch.run()]
    if what == "idle":
        assignment = Assignment(
            worker=worker,
            queues=None,
            concurrency=1,
            lease_s=LEASE_S,
            poll_s=POLL_S,
            grace_s=0,
        )
        port = store.for_worker(worker, Served.one("default", "bench", None, []))
        loops.append(WorkerLoops(port, clock, assignment, {}).run())
    await asyncio.gather(*loops)


def _lost(worker: int, why: str) -> None:
    raise RuntimeError(f"worker {worker} lost its lease: {why}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
