"""The benchmarks still run and report every figure; the values are not checked."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import SECTIONS, WITH_PEERS
from benchmarks.figures import Figure, catalogue
from benchmarks.floors import FLOORS, TIMES
from benchmarks.place import ROOT
from benchmarks.processes import started
from benchmarks.site import KINDS
from benchmarks.sizes import SMOKE
from benchmarks.steady import percentile
from tests.support.postgres import missing
from tests.support.proving import proof


@pytest.mark.xdist_group("benchmarks")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("kind", "sections"),
    [("sqlite", ["enqueue", "workflows", "events"]), *(proof(kind, list(SECTIONS)) for kind in KINDS)],
    ids=str,
)
def test_every_figure_is_reported(kind: str, sections: list[str], tmp_path: Path) -> None:
    if kind == "postgresql" and (reason := missing()):
        pytest.skip(reason)
    output = tmp_path / "figures.jsonl"
    command = [sys.executable, "-m", "benchmarks", "--smoke", "--json", "--url", kind, "--output", str(output)]
    command += ["--folder", str(tmp_path), "--only", ",".join(sections)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    run, *figures = [json.loads(line) for line in answer.stdout.splitlines() if line]
    assert run["kind"] == "run"
    assert run["database"].lower().startswith(kind)
    assert [figure["name"] for figure in figures] == [
        figure.name for figure in catalogue(SMOKE, kind) if figure.section in {*sections} - WITH_PEERS
    ]
    assert all(math.isfinite(figure["median"]) for figure in figures)
    assert output.read_text() == answer.stdout.removesuffix("\n")
    assert list(tmp_path.iterdir()) == [output], "databases were left behind"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import os; os.kill(os.getpid(), 11)", "was killed by SIGSEGV; the end of its log: empty"),
        ("import sys; sys.exit('no')", "ended with exit code 1; the end of its log: no\n"),
    ],
)
def test_the_error_of_an_ended_process_says_how_it_ended(program: str, words: str, tmp_path: Path) -> None:
    with started([sys.executable, "-c", program], {}, tmp_path / "log") as tree:
        assert tree.last_words() == words


def test_a_section_that_does_not_exist_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks", "--only", "drian"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert "no section 'drian'" in answer.stderr


def test_verdicts_compare_the_median() -> None:
    rate = Figure(name="", section="", what="", unit="/s", floor=10)
    delay = Figure(name="", section="", what="", unit="ms", floor=10, grows=False)
    assert [rate.verdict(samples) for samples in ([9, 10, 11], [8, 9, 10], [8, 9])] == ["pass", "noisy", "below"]
    assert [delay.verdict(samples) for samples in ([9, 10, 11], [10, 11, 12], [11])] == ["pass", "noisy", "below"]
    assert delay.ratio([8], [2]) == rate.ratio([2], [8]) == 4


def test_a_peer_is_compared_with_rota_by_the_medians() -> None:
    drain = Figure(name="", section="", what="", unit="/s", times=2)
    assert [drain.verdict([10, 30, 10], ours) for ours in ([20], [19, 100, 19])] == ["pass", "below"]
    assert drain.verdict([10]) == "", "nothing to compare with"


@pytest.mark.parametrize("kind", KINDS)
def test_every_floor_belongs_to_a_figure(kind: str) -> None:
    names = [figure.name for figure in catalogue(SMOKE, kind)]
    assert len(names) == len(set(names))
    assert {*FLOORS[kind], *TIMES[kind]} <= set(names)


def test_percentiles_are_values_that_occurred() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [percentile(values, percent) for percent in (50, 99, 100)] == [50, 99, 100]
    assert percentile([7.0], 99) == 7
