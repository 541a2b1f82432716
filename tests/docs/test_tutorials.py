"""Tutorials of other systems as Rota workflows: they do the same with fewer lines of code."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from examples import canvas, etl, word_count
from rota.testing import harness
from tests.docs.pages import REPOSITORY
from tests.support.workers import Site

# Lines of code, without comments and documentation, of:
AIRFLOW = 29
"""apache-airflow-core 3.3.2, airflow/example_dags/tutorial_taskflow_api.py, which has one transform."""
CELERY = 20 + 12
"""celery/celery: examples/next-steps/proj without `from __future__`, and in docs/userguide/canvas.rst what is typed for
the simple chain, group and chord under "The Primitives" and for `xsum.map` and `add.starmap` under "Map & Starmap"."""
LUIGI = 21
"""luigi 3.8.1, examples/wordcount.py, which reads its files one after the other."""

TEXTS = REPOSITORY / "docs"


@pytest.mark.parametrize(("module", "original"), [(etl, AIRFLOW), (canvas, CELERY), (word_count, LUIGI)])
def test_it_is_shorter_than_the_original(module: ModuleType, original: int) -> None:
    assert module.__file__ is not None
    assert 10 < lines_of_code(Path(module.__file__).read_text()) < original


def test_three_transforms_run_side_by_side() -> None:
    with harness(etl.app) as running:
        run = etl.etl.start()
        running.run_until_idle()
        assert run.result(0) == "510.75 in all, 170.25 on average, most by A-19"
        assert [(step.step, step.status) for step in run.steps()] == [
            (name, "success") for name in ("extract", "total", "largest", "mean", "load")
        ]


def test_the_primitives_of_a_canvas() -> None:
    doubled = [2 * number for number in range(10)]
    with harness(canvas.app) as running:
        workflows = (canvas.chain, canvas.group, canvas.chord, canvas.mapped, canvas.starmapped)
        runs = [workflow.start() for workflow in workflows]
        running.run_until_idle()
        assert [run.result(0) for run in runs] == [16, doubled, 90, [45, 4950], doubled]


def test_words_are_counted_file_by_file_and_added_up() -> None:
    with harness(word_count.app) as running:
        run = word_count.word_count.start(str(TEXTS))
        running.run_until_idle()
        assert run.result(0) == words_of(TEXTS)
        files = run.step("count").map
        assert files is not None
        assert files.width == len(list(TEXTS.glob("*.md"))) > 10


def test_a_worker_counts_the_words_of_real_files(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        site.worker(app="examples.word_count:app")
        rota = [sys.executable, "-m", "rota", "--url", site.url]
        command = [*rota, "enqueue", "word_count", f"folder={TEXTS}", "--wait"]
        answer = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60)
        assert answer.returncode == 0, answer.stderr
        assert json.loads(answer.stdout) == words_of(TEXTS)


def words_of(folder: Path) -> Counter[str]:
    return Counter(word for path in folder.glob("*.md") for word in path.read_text().lower().split())


def lines_of_code(source: str) -> int:
    """Lines that hold more than a comment or a docstring."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None:
            found.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(found)


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
