"""What a job leaves in its process, as the process itself finds out. Each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEFORE = """
import os, subprocess, sys, threading
from rota.executors.room import Room
room, kept = Room(), []
assert room.tidied() and room.is_bare()
"""


@pytest.mark.parametrize(
    ("leaves", "is_bare"),
    [
        ("kept.append(open('/dev/null'))", True),
        ("kept += [open('/dev/null') for _ in range(100)]", False),
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", False),
        ("kept.append(subprocess.Popen(['sleep', '600']))", False),
        ("kept.append(subprocess.Popen(['true']))", False),
        ("subprocess.run(['true'])", True),
        ("t = threading.Thread(target=int); t.start(); t.join()", True),
    ],
)
def test_what_jobs_leave_behind_is_noticed(leaves: str, is_bare: bool) -> None:
    after = "\nprint(room.tidied(), room.is_bare(), flush=True)\n[one.kill() for one in kept if hasattr(one, 'kill')]"
    program = BEFORE + leaves + after
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["True", str(is_bare)]
