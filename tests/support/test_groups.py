"""Tests of one group do not run side by side: one process of the run has them all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

GROUP = """
import time

import pytest


@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("number", range(6))
def test_alone(number):
    time.sleep(0.1)
"""


def test_a_group_of_tests_stays_together(tmp_path: Path) -> None:
    file = tmp_path / "test_group.py"
    file.write_text(GROUP)
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "-v", "-n", "2", "--dist", "loadgroup", str(file)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    answer = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    found = re.findall(r"\[(gw\d+)\] .* PASSED", answer.stdout)
    assert len(found) == 6, answer.stdout + answer.stderr
    assert len(set(found)) == 1, "they ran beside each other"
