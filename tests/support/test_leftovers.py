"""A run does not depend on the shell that started it, and names the test that left something running."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.proving import sampled

REPOSITORY = Path(__file__).parents[2]
SIGNALLED = """
import os, signal, subprocess, sys

def test_a_child_dies_of_a_signal():
    code = "import os, signal; os.kill(os.getpid(), signal.{name}); signal.pause()"
    done = subprocess.run([sys.executable, "-c", code], timeout=20, stderr=subprocess.DEVNULL)
    assert done.returncode == -signal.{name}
"""
LEAVING = """
import socket, subprocess, sys

def test_guilty():
    subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], stdin=subprocess.PIPE)

def test_failing():
    process = subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE)
    left = socket.socket()
    assert process.poll() is not None

def test_innocent():
    import gc
    gc.collect()
"""


def run(folder: Path, text: str, *prefix: str) -> str:
    """What pytest says of a file of tests that has the fixtures and hooks of this repository."""
    (folder / "conftest.py").write_text("from tests.conftest import *\n")
    (folder / "test_it.py").write_text(text)
    command = [*prefix, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "-v", "-rA"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", str(folder), str(folder / "test_it.py")],
        env=kept | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", sampled(["SIGINT", "SIGQUIT", "SIGHUP", "SIGTERM"], 1))
def test_signals_that_the_shell_ignores_are_restored(tmp_path: Path, name: str) -> None:
    ignoring = ["sh", "-c", f"trap '' {name.removeprefix('SIG')}; exec \"$@\"", "sh"]
    said = run(tmp_path, SIGNALLED.replace("{name}", name), *ignoring)
    assert "1 passed" in said, said


def test_a_process_that_a_test_left_running_is_killed_and_named(tmp_path: Path) -> None:
    said = run(tmp_path, LEAVING)
    ends = re.findall(r"^(PASSED|FAILED|ERROR) \S*::(\w+)", said, re.MULTILINE)
    assert ("ERROR", "test_guilty") in ends, said
    assert ("FAILED", "test_failing") in ends, said
    assert ("ERROR", "test_failing") in ends, said
    assert [end for end, test in ends if test == "test_innocent"] == ["PASSED"], said
    assert re.search(r"test_guilty left behind: process \d+ .*signal.pause", said)
    assert re.search(r"test_failing left behind: process \d+ \(sleep 600\), <socket", said)
