"""Enqueueing is typed like the function: a type checker finds mistakes before anything runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

MISTAKES = Path(__file__).with_name("typed_mistakes.txt")
REPOSITORY = Path(__file__).parents[2]


def test_every_mistake_is_found_and_nothing_else(tmp_path: Path) -> None:
    """`typed_usage.py` has what must pass; it is checked with all the other files."""
    source = MISTAKES.read_text()
    (tmp_path / "mistakes.py").write_text(source)
    expected = {
        (number, match[1])
        for number, line in enumerate(source.splitlines(), start=1)
        if (match := re.search(r"# wrong: ([\w-]+)$", line))
    }
    command = [sys.executable, "-m", "mypy", "--config-file", str(REPOSITORY / "pyproject.toml")]
    command += [
        "--cache-dir",
        str(tmp_path / "cache"),
        "--disable-error-code",
        "empty-body",
        str(tmp_path / "mistakes.py"),
    ]
    answer = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    found = re.findall(r"^.*mistakes\.py:(\d+): error: .*\[([\w-]+)\]$", answer.stdout, re.MULTILINE)
    assert {(int(line), code) for line, code in found} == expected, answer.stdout + answer.stderr
