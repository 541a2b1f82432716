"""mypy and pyright understand the code of a user, and find each mistake in it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MISTAKES = ("mistakes", "workflow_mistakes")
REPOSITORY = HERE.parents[1]
Found = set[tuple[str, int, str]]
"""File, line and code."""


def mypy(project: Path) -> Found:
    """With the configuration of the repository, which is strict, and with its cache."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--disable-error-code", "empty-body"]
    command += map(str, sorted(project.glob("*.py")))
    answer = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert answer.returncode in (0, 1), answer.stdout + answer.stderr
    found = re.findall(r"^(?:.*/)?(\w+\.py):(\d+): error: .*\[([\w-]+)\]$", answer.stdout, re.MULTILINE)
    return {(file, int(line), code) for file, line, code in found}


def pyright(project: Path) -> Found:
    (project / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--pythonpath",
        sys.executable,
        "--outputjson",
        "--project",
        str(project),
    ]
    answer = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert answer.returncode in (0, 1), answer.stdout + answer.stderr
    return {
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1, one.get("rule", "") + one["message"])
        for one in json.loads(answer.stdout)["generalDiagnostics"]
    }


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Outside of the repository, as that of a user."""
    for name in ("usage", "workflow_usage"):
        (tmp_path / f"{name}.py").write_text((HERE / f"{name}.py").read_text())
    for name in MISTAKES:
        (tmp_path / f"{name}.py").write_text((HERE / f"{name}.txt").read_text())
    return tmp_path


@pytest.mark.parametrize("check", [mypy, pyright])
def test_every_mistake_is_found_and_nothing_else(project: Path, check: Callable[[Path], Found]) -> None:
    expected = {
        (f"{name}.py", number, match[1])
        for name in MISTAKES
        for number, line in enumerate((HERE / f"{name}.txt").read_text().splitlines(), start=1)
        if (match := re.search(r"# wrong: ([\w-]+)$", line))
    }
    found = check(project)
    if check is mypy:
        assert found == expected
    else:
        assert {one[:2] for one in found} == {one[:2] for one in expected}, "\n".join(map(str, sorted(found)))
