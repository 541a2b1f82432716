"""What is left of workers that were killed together with their stages: nobody waits for it, and nobody would end it.

Whoever starts here, or has lost a worker, ends it, so that it does not go on beside the next attempt.
"""

from __future__ import annotations

import asyncio
import logging

from rota.executors import tree

log = logging.getLogger("rota.engine")


async def end_strays() -> None:
    count = await asyncio.to_thread(tree.kill, tree.strays)
    if count:
        log.warning("ended %d processes that commands of a killed worker had left behind", count)
