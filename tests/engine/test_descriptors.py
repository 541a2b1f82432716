"""Descriptors of child processes: each is closed once, by one owner.

The threads of a supervisor open files all the time, and the kernel gives the number of a closed descriptor to the next
file that is opened. A number that is closed twice is then the database's.
"""

from __future__ import annotations

from pathlib import Path

from rota.engine import loop
from rota.engine.process import ChildProcess
from tests.support.opener import Opener

CHILDREN = 60


async def _start_and_close() -> None:
    for _ in range(CHILDREN):
        child = await ChildProcess.spawn(["true"])
        child.kill()
        await child.wait()
        child.close()


def test_no_descriptor_is_closed_twice(tmp_path: Path) -> None:
    with Opener(tmp_path) as opener:
        loop.run(_start_and_close())
    assert opener.stolen == 0
