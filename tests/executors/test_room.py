"""What a job leaves in its process, as the process itself finds out. Each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEFORE = """
import os, subprocess
from rota.executors.room import Room
room, kept, said = Room(), [], os.dup(1)
assert room.tidied()
"""
AFTER = """
os.write(said, str(room.tidied()).encode())
[one.kill() for one in kept]
"""


@pytest.mark.parametrize(
    ("leaves", "is_tidy"),
    [
        ("kept.append(subprocess.Popen(['sleep', '600']))", False),
        ("kept.append(subprocess.Popen(['true']))", False),
        ("subprocess.run(['sh', '-c', 'sleep 5 > /dev/null 2>&1 &'])", False),
        ("subprocess.run(['true'])", True),
        ("os.chdir('/'); os.umask(0)", True),
        ("os.close(1); os.open(os.devnull, os.O_WRONLY)", False),
    ],
)
def test_what_jobs_leave_behind_is_noticed(leaves: str, is_tidy: bool) -> None:
    program = BEFORE + leaves + AFTER
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == str(is_tidy)
