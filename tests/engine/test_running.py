"""Executions in a real worker: results, errors, retries, timeouts, cancels."""

from __future__ import annotations

from typing import Any

import pytest

from rota import App, ExecutionFailed, Fixed, Handle, Status
from rota.domain.payload import MOST_MESSAGE, MOST_TRACEBACK
from rota.sdk.app import registry_of
from rota.store import claim_reader
from tests.engine.conftest import served_on_both
from tests.support import jobs
from tests.support.waiting import PATIENCE_S
from tests.support.workers import Site

pytestmark = [served_on_both, pytest.mark.xdist_group("running")]


def ended(x: Handle[Any]) -> tuple[str, str, str]:
    """Status, reason and the text of the error, once the execution is over."""
    with pytest.raises(ExecutionFailed):
        x.result(PATIENCE_S)
    info = x.info()
    assert info.reason is not None
    return info.status, info.reason, info.error["message"]


@pytest.mark.parametrize("job", ["echo", "echo_async"])
def test_an_execution_runs_once_and_returns_its_result(served: Site, job: str) -> None:
    value = {"text": "ä€𝄞", "numbers": [1, 2.5, None, True]}
    x = served.enqueue(job, value)
    assert x.result(PATIENCE_S) == value
    (attempt,) = x.attempts()
    (worker,) = served.live()
    assert (attempt.status, attempt.worker, attempt.attempt) == ("success", worker.name, 1)
    assert attempt.started_at is not None
    assert x.info().created_at <= attempt.started_at <= attempt.completed_at
    assert [(id, fence) for id, fence, _ in served.journal("ran") if id == x.id] == [(x.id, 1)]


def test_many_executions_each_run_once(served: Site) -> None:
    handles = served.app.jobs["echo_async"].enqueue_many(range(500))
    assert [handle.result(PATIENCE_S) for handle in handles] == list(range(500))
    ids = {handle.id for handle in handles}
    assert sorted(id for id, _, _ in served.journal("ran") if id in ids) == sorted(ids)


@pytest.mark.parametrize("kind", sorted(jobs.BAD_RESULTS))
@pytest.mark.parametrize("job", ["return", "return_bad_async"])
def test_a_result_that_cannot_be_stored_fails_with_a_clear_error(served: Site, job: str, kind: str) -> None:
    status, reason, message = ended(served.enqueue(job, kind))
    assert (status, reason) == ("failed", "bad_result")
    assert message.startswith("the result ")


def test_arguments_that_no_longer_fit_fail_without_a_retry(served: Site) -> None:
    old = App("engine", url=registry_of(served.app).settings.url)
    try:
        x = old.job(name="changed")(lambda a: a).enqueue(1)
        status, reason, message = ended(x)
    finally:
        old.close()
    assert (status, reason) == ("failed", "bad_arguments")
    assert "changed()" in message
    assert "b" in message


def test_a_job_that_the_worker_does_not_have_is_left_alone(served: Site) -> None:
    newer = App("engine", url=registry_of(served.app).settings.url)
    try:
        x = newer.job(name="brand_new")(lambda: None).enqueue()
        assert served.enqueue("echo", 1).result(PATIENCE_S) == 1
        assert (x.status(), x.attempts()) == (Status.QUEUED, [])
        assert registry_of(served.app).connection.store().read(claim_reader.claim_facts, "default", x.id).offers == "[]"
        assert x.cancel() is Status.CANCELLED
    finally:
        newer.close()


@pytest.mark.parametrize("job", ["raise", "raise_async"])
@pytest.mark.parametrize(
    "kind", ["plain", "mute", "nul", "surrogate", "exit", "interrupt", "cancelled", "generator", "stop"]
)
def test_every_exception_that_a_job_raises_is_recorded(served: Site, job: str, kind: str) -> None:
    x = served.enqueue(job, kind)
    status, reason, message = ended(x)
    assert (status, reason) == ("failed", "error")
    expected = {"plain": "boom", "nul": "a␀b", "surrogate": "a?b", "exit": "3"}
    assert message == expected.get(kind, message)
    error = x.attempts()[0].error
    assert error["type"]
    assert "in deep" in error["traceback"]
    assert served.enqueue("echo", 1).result(PATIENCE_S) == 1


@pytest.mark.parametrize("job", ["raise", "raise_async"])
@pytest.mark.parametrize(("kind", "levels"), [("large", 0), ("plain", 900), ("large", 200), ("group", 10)])
def test_huge_errors_are_shortened_and_stored(served: Site, job: str, kind: str, levels: int) -> None:
    x = served.enqueue(job, kind, levels)
    assert ended(x)[:2] == ("failed", "error")
    error = x.attempts()[0].error
    assert len(error["message"]) <= MOST_MESSAGE
    assert 0 < len(error["traceback"]) <= MOST_TRACEBACK


@pytest.mark.parametrize(
    ("policy", "tries", "reason"),
    [
        ("none", 1, "error"),
        ("fixed", 3, "retries_exhausted"),
        ("linear", 3, "retries_exhausted"),
        ("exponential", 3, "retries_exhausted"),
        ("custom", 3, "permanent_error"),
        ("callable", 3, "permanent_error"),
        ("only", 1, "permanent_error"),
        ("never", 1, "permanent_error"),
        ("broken", 1, "permanent_error"),
    ],
)
def test_every_retry_policy_is_followed_and_every_attempt_is_recorded(
    served: Site, policy: str, tries: int, reason: str
) -> None:
    x = served.enqueue(f"retry_{policy}")
    status, why, _ = ended(x)
    assert (status, why, x.info().attempt_count) == ("failed", reason, tries)
    tried = [(fence, attempt) for id, fence, attempt in served.journal("tried") if id == x.id]
    assert tried == [(number, number) for number in range(1, tries + 1)]
    attempts = x.attempts()
    assert [attempt.attempt for attempt in attempts] == list(range(1, tries + 1))
    assert [attempt.is_final for attempt in attempts] == [False] * (tries - 1) + [True]
    for number, attempt in enumerate(attempts, start=1):
        error = attempt.error
        assert attempt.worker
        assert attempt.started_at is not None
        assert attempt.started_at <= attempt.completed_at
        assert "Traceback" in error["traceback"]
        if policy != "broken":
            assert (error["type"], error["message"]) == ("ValueError", f"attempt {number}")
    assert x.id in [row.execution_id for row in served.app.dead.list(job=f"retry_{policy}")]


@pytest.mark.parametrize(("kind", "result", "attempts"), [("retry", "attempt 2", 2), ("snooze", "attempt 1", 1)])
def test_a_job_can_snooze(served: Site, kind: str, result: str, attempts: int) -> None:
    x = served.enqueue("signals", kind)
    assert x.result(PATIENCE_S) == result
    assert x.info().attempt_count == attempts
    assert [attempt.status for attempt in x.attempts()] == ["failed" if kind == "retry" else "snoozed", "success"]


@pytest.mark.parametrize(
    ("kind", "message"), [("fail", "no hope"), ("retry badly", "RetryIn"), ("snooze badly", "Snooze")]
)
def test_a_job_can_fail_for_good_and_an_invalid_delay_fails_for_good(served: Site, kind: str, message: str) -> None:
    x = served.enqueue("signals", kind)
    status, reason, text = ended(x)
    assert (status, reason) == ("failed", "permanent_error")
    assert message in text


@pytest.mark.parametrize("job", ["slow_async", "slow_cooperative"])
def test_an_attempt_that_takes_too_long_is_stopped(served: Site, job: str) -> None:
    status, reason, message = ended(served.enqueue(job))
    assert (status, reason) == ("failed", "timeout")
    assert "longer than 0.3 s" in message


@pytest.mark.parametrize(("timeout", "words"), [("0.1s", "longer than 0.1 s"), ("0.5s", "longer than 0.5 s")])
def test_an_execution_may_have_a_timeout_of_its_own(served: Site, timeout: str, words: str) -> None:
    status, reason, message = ended(served.app.jobs["slow_async"].options(timeout=timeout).enqueue())
    assert (status, reason) == ("failed", "timeout")
    assert words in message


@pytest.mark.parametrize("job", ["retry_none", "retry_fixed", "retry_exponential", "retry_custom"])
@pytest.mark.parametrize("attempts", [1, 2])
def test_an_execution_may_have_retries_of_its_own(served: Site, job: str, attempts: int) -> None:
    x = served.app.jobs[job].options(retry=Fixed(attempts=attempts, delay=0.02)).enqueue()
    assert ended(x)[2] == f"attempt {attempts}"


def test_which_errors_are_retried_remains_the_decision_of_the_job(served: Site) -> None:
    x = served.app.jobs["retry_never"].options(retry=Fixed(attempts=2, delay=0.02)).enqueue()
    assert ended(x)[1:] == ("permanent_error", "attempt 1")


@pytest.mark.parametrize("prefix", ["", "alone_"])
def test_children_inherit_the_headers_of_their_parent(served: Site, prefix: str) -> None:
    parent = served.app.jobs[f"{prefix}headers"].options(headers={"tenant": "ann", "level": "0"}).enqueue(1)
    tenant, child = parent.result(PATIENCE_S)
    assert tenant == "ann"
    assert served.app.handle(child).result(PATIENCE_S) == ["ann", "1"]


@pytest.mark.parametrize("job", ["never_in_total", "too_long_in_total"])
def test_a_total_timeout_limits_all_attempts_together(served: Site, job: str) -> None:
    x = served.enqueue(job)
    status, reason, _ = ended(x)
    assert (status, reason) == ("failed", "total_timeout")


@pytest.mark.parametrize("job", ["gated", "gated_async", "cleans_up_badly"])
def test_a_running_execution_is_asked_to_stop_and_ends_as_cancelled(served: Site, job: str) -> None:
    x = served.enqueue(job, "never")
    served.wait_started(x)
    assert x.cancel() is Status.RUNNING
    served.wait_for(x, Status.CANCELLED)
    assert served.wait_started(x, "told")
    assert x.info().reason == "cancelled"
    assert served.app.dead.list(job=job) == []


def test_a_job_that_finishes_although_it_was_cancelled_is_a_success(served: Site) -> None:
    x = served.enqueue("hold_interpreter", 1)
    served.wait_started(x)
    x.cancel()
    assert x.result(PATIENCE_S) == "done"


def test_the_arguments_of_a_huge_payload_arrive(served: Site) -> None:
    value: Any = {"text": "x" * 500_000}
    assert served.enqueue("echo", value).result(PATIENCE_S) == value
