"""Starting runs of traced workflows in the harness: defaults, options, values, handles."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from rota import (
    App,
    ArgumentsError,
    Context,
    DefinitionError,
    ExecutionCancelled,
    ExecutionFailed,
    FailForGood,
    Run,
    Status,
    WorkflowError,
)
from rota.testing import harness
from rota.workflow import RunInfo, first, otherwise, this_run, when

app = App("starting", url="sqlite://:memory:")


@app.job
def double(n: int) -> int:
    return 2 * n


@app.job
def refuse(n: int) -> int:
    raise ValueError(f"{n} is too much")


@app.job
def name_of(workflow: str, n: int) -> str:
    return f"{workflow} {n}"


@app.workflow
def with_default(n: int = 4) -> int:
    return double.step(n)


@app.workflow
def of_items(items: list[int], extra: int = 1) -> list[int]:
    return with_default.map(items)


@app.workflow
def choose(n: int) -> int:
    size = double.step(n)
    with when(size > 10):
        large = double.options(name="large").step(size)
    with otherwise():
        small = double.options(name="small").step(n)
    return first(large, small)


@app.workflow
def once(n: int) -> int:
    return refuse.options(retry=None).step(n)


@app.job
def where(ctx: Context, n: int) -> RunInfo | None:
    return ctx.run


@app.workflow
def told(numbers: list[int]) -> tuple[RunInfo, list[RunInfo], str, datetime]:
    return where.step(0), where.map(numbers), this_run.id, this_run.scheduled_for  # type: ignore[return-value]


@app.workflow(timeout="1h")
def fails(n: int) -> str:
    value = refuse.options(retry=1).step(n)
    return name_of.step(this_run.workflow, value)


def test_parameters_have_their_defaults() -> None:
    with harness(app) as rota:
        runs = [with_default.start(), with_default.start(1), with_default.start(n=2)]
        nested = of_items.start([1, 2])
        rota.run_until_idle()
        assert [run.result() for run in runs] == [8, 2, 4]
        assert nested.result() == [2, 4]


def test_the_branch_that_is_taken_has_the_value() -> None:
    with harness(app) as rota:
        large, small = choose.start(7), choose.start(2)
        rota.run_until_idle()
        assert (large.result(), small.result()) == (28, 4)
        assert (large.step("small").status, small.step("large").status) == ("skipped", "skipped")


def test_a_job_knows_its_run() -> None:
    with harness(app) as rota:
        run = told.options(delay="1h").start([7, 8])
        rota.advance("2h")
        first, items, id, scheduled_for = run.result()
        assert (first.id, first.workflow, first.step) == (run.id, "told", "where") == (id, "told", "where")
        assert (first.index, first.width) == (None, None)
        assert first.scheduled_for == scheduled_for == datetime(2026, 1, 1, 1, tzinfo=UTC)
        assert first.started_at == run.detail().started_at
        assert [(one.step, one.index, one.width) for one in items] == [("where_2", 0, 2), ("where_2", 1, 2)]
        again = run.retry("start")
        rota.run_until_idle()
        assert again.result()[0].scheduled_for == again.result()[3] == rota.now
        alone = where.enqueue(1)
        rota.run_until_idle()
        assert alone.result() is None
        assert where(1) is None


def test_a_failed_run_says_which_step_failed_and_can_be_retried() -> None:
    with harness(app) as rota:
        run = fails.start(5)
        rota.run_until_idle()
        with pytest.raises(ExecutionFailed, match="step refuse failed: ValueError: 5 is too much") as raised:
            run.result()
        assert (raised.value.reason, raised.value.job) == ("step_failed", "fails")
        assert run.step("name_of").status == "blocked"
        assert [letter.execution_id for letter in app.dead.list()] == [run.id]
        again = run.retry(step_arguments={"refuse": {"n": 6}})
        assert again != run
        rota.run_until_idle()
        assert again.status() is Status.FAILED
        assert "6 is too much" in (again.detail().error_message or "")


def test_a_fake_takes_the_place_of_a_job() -> None:
    with harness(app, fakes={refuse: lambda n: n + 1, "name_of": lambda workflow, n: f"{workflow}: {n}"}) as rota:
        run = fails.start(5)
        rota.run_until_idle()
        assert run.result() == "fails: 6"


def test_a_fake_that_takes_other_arguments_is_named() -> None:
    with harness(app, fakes={refuse: lambda: None}) as rota:
        run = fails.start(5)
        rota.run_until_idle()
        assert "the fake of refuse()" in (run.detail().error_message or "")


def test_a_key_names_one_run() -> None:
    with harness(app) as rota:
        one, other = (with_default.options(key="k").start(3) for _ in range(2))
        assert (one, other.created) == (other, False)
        assert isinstance(with_default.handle(one.id), Run)
        rota.run_until_idle()
        assert with_default.handle(one.id).result() == 6


@pytest.mark.parametrize("option", [{"retry": 3}, {"timeout": "1s"}])
def test_options_of_attempts_are_refused_for_a_run(option: dict[str, object]) -> None:
    with harness(app), pytest.raises(DefinitionError, match=f"a run has no {next(iter(option))}="):
        with_default.options(**option).start(1)  # type: ignore[arg-type]


def test_errors_of_a_run_speak_of_the_run() -> None:
    with harness(app) as rota:
        failed, cancelled = fails.start(5), with_default.start(1)
        cancelled.cancel()
        rota.run_until_idle()
        with pytest.raises(ExecutionFailed, match=rf"^run {failed.id} failed \(step_failed\): "):
            failed.result()
        with pytest.raises(ExecutionCancelled, match=f"^run {cancelled.id} was cancelled$"):
            cancelled.result()


def test_options_of_a_step_are_refused_by_start() -> None:
    with pytest.raises(DefinitionError, match="at_once= is for a step of a workflow, not for start"):
        with_default.options(at_once=3).start()


def test_retry_none_is_no_retry() -> None:
    """As in `@app.job(retry=None)`, for a step and for an enqueue."""
    with harness(app) as rota:
        run, alone = once.start(5), refuse.options(retry=None).enqueue(5)
        rota.run_until_idle()
        assert run.step("refuse").attempt_count == 1
        assert (alone.status(), len(alone.attempts())) == ("failed", 1)


def test_the_arguments_of_a_retry_are_checked() -> None:
    with harness(app) as rota:
        run = with_default.start()
        rota.run_until_idle()
        with pytest.raises(ArgumentsError, match=r"with_default\(\): there is no argument 'm'; it takes"):
            run.retry("start", arguments={"m": 1})
        with pytest.raises(ArgumentsError, match="argument 'n': expected integer, got string"):
            run.retry("start", arguments={"n": "x"})
        again = run.retry("start", arguments={"n": 1})
        rota.run_until_idle()
        assert again.result() == 2


def test_a_check_is_about_one_workflow() -> None:
    """Even if it has a step that is a workflow which cannot be built."""
    other = App("checked", url="sqlite://:memory:")

    @other.workflow
    def broken(n: int) -> int:
        if this_run.id:
            return 1
        return n

    @other.workflow
    def sound(n: int) -> int:
        return broken.step(n)

    sound.check()
    with pytest.raises(WorkflowError):
        broken.check()


def test_a_workflow_is_started_and_not_called_or_enqueued() -> None:
    app = App("shop")

    @app.job
    def send(to: str) -> str:
        raise FailForGood(to)

    @app.workflow
    def w(to: str) -> str:
        return send.step(to)

    called: Any = w
    with pytest.raises(TypeError, match=r"write w\.start\(…\)"):
        called("a")
    with pytest.raises(AttributeError, match=r"write w\.start\(…\)"):
        called.enqueue("a")
    with harness(app) as rota:
        run = w.start("a")
        rota.run_until_idle()
        with pytest.raises(ExecutionFailed, match="step send failed: FailForGood: a"):
            run.result()
