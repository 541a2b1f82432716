"""A supervisor that is going to be killed. Prints the pids of its spawner, a worker process, and a program of that.

The spawner is stopped before it has read that it must watch the worker process.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess

from rota.executors.process.spawner import Spawner

SHELL = ["sh", "-c", "sleep 1000 & echo $!; wait"]


async def main(shell: subprocess.Popen[str]) -> None:
    assert shell.stdout is not None
    program = shell.stdout.readline().strip()
    spawner = Spawner()
    spawner.start()
    assert spawner._connection is not None
    os.kill(spawner._connection.pid, signal.SIGSTOP)
    spawner._connection.post({"do": "hold", "pid": shell.pid, "until": None})  # `hold` would continue the spawner.
    print(spawner.pid, shell.pid, program, flush=True)
    await asyncio.Event().wait()


asyncio.run(main(subprocess.Popen(SHELL, start_new_session=True, stdout=subprocess.PIPE, text=True)))
