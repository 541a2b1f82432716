"""Orphans of a command are found, and descendants that end in time are not reported."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.chaos.census import Orphans, Role, Someone
from tests.kill.processes import Process, children_of, wait_until

PATIENCE_S = 30.0
LEAVES_ONE = "import os, time\nif os.fork() == 0:\n    os.setsid()\ntime.sleep(600)"


class Scene:
    """A command with a grandchild in a session of its own."""

    def __init__(self) -> None:
        self.command = subprocess.Popen([sys.executable, "-I", "-S", "-c", LEAVES_ONE])
        wait_until(lambda: len(children_of(self.command.pid)) == 1, PATIENCE_S, "the grandchild")
        (pid,) = children_of(self.command.pid)
        self.grandchild = Process(pid)
        self.census = [Someone(pid, self.command.pid, Role.GRANDCHILD, 1)]

    def end_command(self) -> None:
        self.command.kill()
        self.command.wait(PATIENCE_S)

    def close(self) -> None:
        self.end_command()
        self.grandchild.signal(signal.SIGKILL)
        self.grandchild.close()


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    try:
        yield made
    finally:
        made.close()


def test_an_orphan_is_reported_once(scene: Scene) -> None:
    orphans = Orphans(gone_s=0.0)
    assert orphans.look(scene.census) == []
    assert orphans.seen == 1
    scene.end_command()
    assert orphans.look([]) == [f"process {scene.grandchild.pid} outlived the command that started it by 0 s"]
    assert orphans.look([]) == []


def test_a_descendant_that_ends_in_time_is_not_reported(scene: Scene) -> None:
    orphans = Orphans(gone_s=600.0)
    orphans.look(scene.census)
    scene.end_command()
    assert orphans.look([]) == []
    scene.grandchild.signal(signal.SIGKILL)
    wait_until(scene.grandchild.is_gone, PATIENCE_S, "its end")
    assert orphans.look([]) == []
    orphans.close()
