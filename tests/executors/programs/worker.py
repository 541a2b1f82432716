"""A worker that is going to be killed: `worker.py FAMILY FILE forked|alone`. Prints the pid of its spawner."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from rota.executors.process.spawner import Spawner


async def main() -> None:
    family, file, company = sys.argv[1:]
    spawner = Spawner()
    await spawner.spawn([sys.executable, family, file, "stay"], dict(os.environ), None, 2, 2)
    fork = 0
    if company == "forked" and (fork := os.fork()) == 0:  # It holds a copy of every descriptor, the line's included.
        while True:
            signal.pause()
    print(spawner.pid, fork, flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
