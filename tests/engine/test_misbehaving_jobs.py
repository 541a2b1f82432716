"""Jobs that fork, change or fill the process that they run in: no other execution and no other record is affected."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rota import Status
from tests.support.rude_jobs import ENDS
from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site, is_alive

pytestmark = pytest.mark.xdist_group("rudeness")


@pytest.mark.parametrize("number", [12, 40], ids=["named", "nameless"])
def test_executions_restart_after_any_signal_kills_their_worker_process(site: Site, number: int) -> None:
    worker = site.worker(lease_s=600)
    x = site.enqueue("die_by", number)
    assert x.result(PATIENCE_S) == "start 2"
    assert "Traceback" not in worker.log()


@pytest.mark.parametrize("job", ["forks", "forks_async", "alone_forks"])
def test_a_process_that_a_job_forks_ends_with_the_job(served: Site, job: str) -> None:
    copy, original = served.enqueue(job).result(PATIENCE_S)
    assert copy > 0
    assert job == "alone_forks" or is_alive(original), "only a process of its own is replaced, at any time from now"
    eventually(lambda: not is_alive(copy), what="the end of the copy")
    numbers = range(20)
    executions = [served.enqueue(name, number) for number in numbers for name in ("alone", "echo_async", "echo")]
    results = [x.result(PATIENCE_S) for x in executions]
    assert [value if isinstance(value, int) else value[0] for value in results] == [n for n in numbers for _ in "123"]


@pytest.mark.parametrize("job", ["forks_and_waits", "forks_and_waits_async", "alone_forks_and_waits"])
def test_a_forked_process_exits_with_the_exit_code_of_python(served: Site, job: str) -> None:
    executions = {how: served.enqueue(job, how) for how in ENDS}
    assert {how: x.result(PATIENCE_S) for how, x in executions.items()} == ENDS


def test_the_traceback_of_a_forked_process_is_in_the_log_of_its_job(served: Site) -> None:
    x = served.enqueue("alone_forks_and_waits", "raise")
    eventually(lambda: "LookupError: in the copy" in [line.text for line in served.logs(x)], what="the traceback")


@pytest.mark.parametrize("job", ["leaks", "leaks_async", "alone_leaks", "alone_leaks_async"])
def test_context_variables_of_one_attempt_are_not_seen_by_the_next(served: Site, job: str) -> None:
    executions = [served.enqueue(job) for _ in range(60)]
    assert [x.result(PATIENCE_S) for x in executions] == [["import"]] * 60


@pytest.mark.parametrize("what", ["directory", "mask", "stdout", "stream", "descriptors", "alarm"])
def test_changes_that_a_job_makes_to_its_process_are_not_seen_by_the_next(served: Site, what: str) -> None:
    directory, mask, _ = served.enqueue("decent").result(PATIENCE_S)
    for _ in range(os.cpu_count() or 2):
        served.enqueue("spoils", what).result(PATIENCE_S)
    for x in [served.enqueue("decent", 0.5) for _ in range(4)]:
        assert x.result(PATIENCE_S)[:2] == [directory, mask]
        assert x.info().crashes == 0
        eventually(lambda x=x: [line.text for line in served.logs(x)] == ["hello"], what="its log")  # type: ignore[misc]


def test_a_job_can_be_stopped_after_one_that_blocked_the_signal(served: Site) -> None:
    for _ in range(os.cpu_count() or 2):
        served.enqueue("spoils", "deaf").result(PATIENCE_S)
    x = served.enqueue("tidy")
    served.wait_for(x, Status.FAILED)
    assert [id for id, _, _ in served.journal("cleaned")].count(x.id) == 1


def test_memory_that_a_job_keeps_is_not_charged_to_the_next(served: Site) -> None:
    for _ in range(3):
        served.enqueue("hoards", 90, keeps=True).result(PATIENCE_S)
        served.enqueue("hoards", 90, keeps=False).result(PATIENCE_S)


def test_a_process_with_a_memory_limit_is_reused_if_it_has_kept_little(served: Site) -> None:
    pids = {served.enqueue("hoards", 1, keeps=False).result(PATIENCE_S) for _ in range(4)}
    assert len(pids) <= (os.cpu_count() or 2)


@pytest.mark.parametrize("words", ["in time", ""])
@pytest.mark.parametrize("prefix", ["", "alone_"])
def test_reports_after_the_end_of_an_attempt_are_ignored(served: Site, prefix: str, words: str) -> None:
    gate = f"{prefix}late{len(words)}"
    x = served.enqueue(f"{prefix}speaks_late", gate, words)
    x.result(PATIENCE_S)
    others = [served.enqueue("alone_sleeps", 0.5) for _ in range(os.cpu_count() or 2)]
    served.open(gate)
    if not prefix:  # Alone, it has ended with its process.
        eventually(lambda: x.id in [id for id, _, _ in served.journal("spoke")], what="its late words")
    for other in others:
        other.result(PATIENCE_S)
        assert served.logs(other) == []
    after = served.enqueue(f"{prefix}says_odd_things", 10)
    after.result(PATIENCE_S)
    eventually(lambda: len(served.logs(after)) == 3, what="what is written after that")
    assert [line.text for line in served.logs(x)] == words.splitlines()


@pytest.mark.parametrize("prefix", ["", "alone_"])
def test_no_output_makes_a_job_fail(served: Site, prefix: str) -> None:
    x = served.enqueue(f"{prefix}says_odd_things", 70 * 2**20)
    x.result(PATIENCE_S)
    eventually(lambda: len(served.logs(x)) == 3, what="its log")
    odd, long, nul = [line.text for line in served.logs(x)]
    assert (odd, nul) == ("a?b", "c␀d")
    assert 1000 < len(long) < 10_000


def test_tasks_that_an_isolated_function_left_behind_are_cancelled(served: Site) -> None:
    gate = "tasks"
    for _ in range(os.cpu_count() or 2):
        served.enqueue("alone_leaves_tasks", gate).result(PATIENCE_S)
    served.open(gate)
    others = [served.enqueue("alone_sleeps", 0.5) for _ in range(os.cpu_count() or 2)]
    for other in others:
        other.result(PATIENCE_S)
    after = served.enqueue("alone_says_odd_things", 10)
    after.result(PATIENCE_S)
    eventually(lambda: len(served.logs(after)) == 3, what="what is written after that")
    assert [served.logs(other) for other in others] == [[] for _ in others]


@pytest.mark.parametrize("words", ["'x' * 300_000", "'a' + chr(0xD800) + 'b'"], ids=["long", "surrogate"])
def test_the_worker_logs_whatever_error_the_import_of_its_app_raises(tmp_path: Path, words: str) -> None:
    (tmp_path / "wordy.py").write_text(f"raise RuntimeError({words})")
    command = [sys.executable, "-m", "rota", "worker", "wordy:app"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 2
    assert "rota: " in done.stderr
    assert "RuntimeError" in done.stderr
    assert "asyncio" not in done.stderr
