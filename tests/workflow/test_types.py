"""Steps are typed like the functions of their jobs: a type checker finds mistakes before anything is built."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
CHECKERS = {
    "mypy": ["--config-file", str(REPOSITORY / "pyproject.toml"), "--disable-error-code", "empty-body"],
}


@pytest.mark.parametrize("checker", CHECKERS)
def test_every_mistake_is_found_and_nothing_else(checker: str, tmp_path: Path) -> None:
    mistakes = (HERE / "typed_mistakes.txt").read_text()
    (tmp_path / "mistakes.py").write_text(mistakes)
    (tmp_path / "usage.py").write_text((HERE / "typed_usage.py").read_text())
    expected = {
        (number, match[1])
        for number, line in enumerate(mistakes.splitlines(), start=1)
        if (match := re.search(r"# wrong: ([\w-]+)$", line))
    }
    files = [str(tmp_path / name) for name in ("mistakes.py", "usage.py")]
    command = [sys.executable, "-m", checker, *CHECKERS[checker], *files]
    answer = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    found = re.findall(r"^.*(mistakes|usage)\.py:(\d+): error: .*\[([\w-]+)\]$", answer.stdout, re.MULTILINE)
    assert {(int(line), code) for _, line, code in found} == expected, answer.stdout + answer.stderr
    assert not [line for file, line, _ in found if file == "usage"], answer.stdout
