"""Steps are typed like the functions of their jobs: a type checker finds mistakes before anything is built."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
CHECKERS = {
    "mypy": ["--config-file", str(REPOSITORY / "pyproject.toml"), "--disable-error-code", "empty-body"],
    "pyright": ["--pythonpath", sys.executable],
}
ERROR = re.compile(r"^.*(mistakes|usage)\.py:(\d+)(?::\d+ -|:) error: ", re.MULTILINE)


@pytest.mark.parametrize("checker", [name for name in CHECKERS if find_spec(name)])
def test_every_mistake_is_found_and_nothing_else(checker: str, tmp_path: Path) -> None:
    """mypy also gives the errors the codes that the file names."""
    mistakes = (HERE / "typed_mistakes.txt").read_text()
    (tmp_path / "mistakes.py").write_text(mistakes)
    (tmp_path / "usage.py").write_text((HERE / "typed_usage.py").read_text())
    expected = {
        ("mistakes", number): match[1]
        for number, line in enumerate(mistakes.splitlines(), start=1)
        if (match := re.search(r"# wrong: ([\w-]+)$", line))
    }
    files = [str(tmp_path / name) for name in ("mistakes.py", "usage.py")]
    command = [sys.executable, "-m", checker, *CHECKERS[checker], *files]
    answer = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    found = {(match[1], int(match[2])) for match in ERROR.finditer(answer.stdout)}
    assert found == expected.keys(), answer.stdout + answer.stderr
    if checker == "mypy":
        for (_, line), code in expected.items():
            assert re.search(rf"mistakes\.py:{line}: error: .*\[{code}\]$", answer.stdout, re.MULTILINE), answer.stdout
