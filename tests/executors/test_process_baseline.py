"""Changes that a job leaves in its process, as the process itself detects them. Each test has its own process."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEFORE = """
import os, resource, signal, subprocess
from rota.executors.process.process_baseline import ProcessBaseline
baseline, kept, said = ProcessBaseline(), [], os.dup(1)
first = signal.pthread_sigmask(signal.SIG_BLOCK, []), resource.getrlimit(resource.RLIMIT_NOFILE)
assert not baseline.restored()
"""
AFTER = """
found = baseline.restored()
assert found or (signal.pthread_sigmask(signal.SIG_BLOCK, []), resource.getrlimit(resource.RLIMIT_NOFILE)) == first
os.write(said, found.encode())
[one.kill() for one in kept]
"""
LOWER = "resource.setrlimit(resource.RLIMIT_NOFILE, (16, first[1][1]))"


def found(leaves: str) -> str:
    program = BEFORE + leaves + AFTER
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


@pytest.mark.parametrize(
    ("leaves", "what"),
    [
        ("kept.append(subprocess.Popen(['sleep', '600']))", "processes"),
        ("kept.append(subprocess.Popen(['true']))", "processes"),
        ("subprocess.run(['sh', '-c', 'sleep 5 > /dev/null 2>&1 &'])", "processes"),
        ("subprocess.run(['true'])", ""),
        ("os.chdir('/'); os.umask(0)", ""),
        ("import sys; sys.stdout.close()", "a closed standard stream"),
        ("signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])", ""),
        (LOWER, "other resource limits"),
    ],
)
def test_changes_that_jobs_leave_are_restored_or_detected(leaves: str, what: str) -> None:
    assert found(leaves) == what
