"""Jobs that depend on others: rounds, what counts for them, and what an enqueue does to them."""

from __future__ import annotations

from typing import Any

import pytest

from rota.domain.errors import DefinitionError
from rota.domain.outcome import Snoozed, Succeeded
from rota.domain.status import Status
from rota.ops import finish
from rota.ops.finish import Finished
from tests.support.rounds import BOTH, Rounds, depending, deployed
from tests.support.world import FAILED, THREE_TRIES, World


@pytest.fixture
def rounds(world: World) -> Rounds:
    return Rounds(world)


def test_case_25_three_successes_of_one_upstream_and_two_of_the_other_are_two_rounds(rounds: Rounds) -> None:
    rounds.run("extract")
    rounds.run("extract")
    assert rounds.placed() == []
    rounds.run("rates")
    first = rounds.claim("load")
    rounds.run("extract")
    rounds.run("rates")
    assert rounds.placed() == [first.id]
    rounds.world.finish(first, FAILED)
    (_, second) = rounds.placed()
    assert rounds.world.status(second) is Status.QUEUED
    rounds.run("load")
    assert rounds.placed() == [first.id, second]
    assert rounds.met() == {"extract": None, "rates": None}


def test_an_execution_names_the_ends_that_started_it(rounds: Rounds) -> None:
    extract, rates = rounds.run("extract"), rounds.run("rates")
    attempt = rounds.claim("load")
    assert attempt.upstream == f'{{"extract":"{extract}","rates":"{rates}"}}'
    row = rounds.world.execution(attempt.id)
    assert (row.actor, row.queue, row.arguments) == ("dependency", "default", "{}")


def test_the_execution_has_the_options_of_its_job(world: World) -> None:
    about = {"queue": "slow", "priority": 7, "start_within_s": 60.0, "arguments": '{"full":true}'}
    rounds = Rounds(world, {"extract": "success"}, **about)
    rounds.run("extract")
    row = world.execution(rounds.placed()[0])
    assert (row.queue, row.priority, row.arguments) == ("slow", 7, '{"full":true}')
    assert row.deadline == world.clock.now() + 60_000_000


def test_ends_of_one_batch_are_one_round(rounds: Rounds) -> None:
    world = rounds.world
    for job in ("extract", "rates", "extract"):
        world.enqueue(job)
    attempts = world.claim(rounds.worker)
    world.store.transact(finish.finish, [Finished(one.id, one.fence, Succeeded("1")) for one in attempts])
    assert len(rounds.placed()) == 1
    assert set(rounds.met().values()) == {None}


@pytest.mark.parametrize(
    ("outcome", "counts"),
    [("success", {"success"}), ("failed", {"failed"}), ("done", {"success", "failed", "cancelled", "skipped"})],
)
def test_which_ends_count(world: World, outcome: str, counts: set[str]) -> None:
    rounds = Rounds(world, {"extract": outcome})
    for end in ("success", "failed", "cancelled", "skipped"):
        before = rounds.placed()
        if end == "cancelled":
            world.cancel(world.enqueue("extract"))
        elif end == "skipped":
            world.enqueue("extract", start_within_s=1.0)
            world.clock.advance(2)
            assert world.claim(rounds.worker, jobs=["extract"]) == []
        else:
            rounds.run("extract", Succeeded("1") if end == "success" else FAILED)
        assert len(rounds.placed()) - len(before) == (end in counts), end
        if len(rounds.placed()) > len(before):
            rounds.run("load")


def test_a_failed_attempt_that_is_retried_is_no_end(world: World) -> None:
    rounds = Rounds(world, {"extract": "done"})
    rounds.run("extract", FAILED, THREE_TRIES)
    assert rounds.placed() == []


@pytest.mark.parametrize("outcome", [FAILED, Snoozed(delay_s=60.0)], ids=["retrying", "snoozed"])
def test_a_job_that_is_to_run_again_has_not_ended(rounds: Rounds, outcome: FAILED | Snoozed) -> None:  # type: ignore[valid-type]
    rounds.run("extract")
    rounds.run("rates")
    rounds.run("load", outcome, THREE_TRIES)
    rounds.run("extract")
    rounds.run("rates")
    assert len(rounds.placed()) == 1
    rounds.world.clock.advance(100)
    rounds.world.promote()
    rounds.run("load")
    assert len(rounds.placed()) == 2


def test_a_cancelled_execution_ends_its_round(rounds: Rounds) -> None:
    rounds.run("extract")
    rounds.run("rates")
    rounds.run("extract")
    rounds.run("rates")
    (first,) = rounds.placed()
    rounds.world.cancel(first)
    assert len(rounds.placed()) == 2


def test_an_enqueue_ignores_the_edges_and_clears_them(rounds: Rounds) -> None:
    rounds.run("extract")
    mine = rounds.world.enqueue("load")
    assert rounds.met() == {"extract": None, "rates": None}
    rounds.run("rates")
    rounds.run("extract")
    assert rounds.placed() == [mine]
    rounds.run("load")
    assert len(rounds.placed()) == 2


def test_a_key_that_is_known_clears_nothing(rounds: Rounds) -> None:
    rounds.world.enqueue("load", key="k")
    rounds.run("extract")
    rounds.world.enqueue("load", key="k")
    assert rounds.met()["extract"] is not None


def test_a_delayed_execution_does_not_hold_a_round_back(rounds: Rounds) -> None:
    rounds.world.enqueue("load", delay_s=3600.0)
    rounds.run("extract")
    rounds.run("rates")
    assert len(rounds.placed()) == 2


def test_a_chain_and_other_apps_and_queues(world: World) -> None:
    world.register("close", app="billing")
    rounds = Rounds(world)
    report = depending("report", {"load": "success", "billing/close": "success"}, queue="slow")
    rounds.deploy(depending("load", {"extract": "success"}), report)
    close = rounds.run("close", app="billing")
    rounds.run("extract")
    load = rounds.run("load")
    attempt = rounds.claim("report")
    assert rounds.placed("report") == [attempt.id]
    assert attempt.upstream == f'{{"billing.close":"{close}","load":"{load}"}}'


def test_namespaces_do_not_mix(rounds: Rounds) -> None:
    world = rounds.world
    jobs = {name: depending(name, {}) for name in ("extract", "rates")}
    worker = deployed(world, {**jobs, "load": depending("load", BOTH)}, namespace="other")
    rounds.run("extract")
    world.enqueue("rates", namespace="other")
    (attempt,) = world.claim(worker, namespace="other")
    world.finish(attempt)
    assert rounds.placed() == []


def test_the_report_of_an_attempt_that_completed_in_its_own_transaction_does_not_count_again(world: World) -> None:
    rounds = Rounds(world, {"extract": "success"})
    world.enqueue("extract")
    attempt = rounds.claim("extract")
    report = Finished(attempt.id, attempt.fence, Succeeded("1"), written="1")
    world.store.transact(finish.complete, report)
    rounds.run("load")
    assert world.store.transact(finish.finish, [report]) == [attempt.id]
    assert len(rounds.placed()) == 1


def test_nothing_is_read_for_the_ends_of_other_jobs(rounds: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    world = rounds.world
    world.enqueue("send")
    attempt = rounds.claim("send")

    def counted(tx: Any, *reports: Finished) -> None:
        with monkeypatch.context() as patch:
            for method in ("run", "rows", "records"):
                genuine = getattr(type(tx), method)

                def noted(self: Any, name: str, *args: Any, _genuine: Any = genuine, **params: Any) -> Any:
                    seen.append(name)
                    return _genuine(self, name, *args, **params)

                patch.setattr(type(tx), method, noted)
            finish.finish(tx, reports)

    world.store.transact(counted, Finished(attempt.id, attempt.fence, Succeeded("1"), job="send"))
    # `awaited_ends` and `open_callbacks` are cached: the first end in a second reads them, the other ends of the second
    # do not. `count_ends` only writes.
    assert set(seen) <= {"finish_successes", "awaited_ends", "open_callbacks", "count_ends"}
    rounds.world.enqueue("extract")
    attempt = rounds.claim("extract")
    world.store.transact(counted, Finished(attempt.id, attempt.fence, Succeeded("1"), job="extract"))
    assert "ended_jobs" in seen


# --- Registration -------------------------------------------------------------------------------


def test_an_unknown_upstream_is_refused(rounds: Rounds) -> None:
    with pytest.raises(DefinitionError, match=r"job shop.load depends on shop.sned, .*did you mean shop.send\?"):
        rounds.deploy(depending("load", {"sned": "success"}))
    with pytest.raises(DefinitionError, match=r"depends on billing.close, which is not known: start a worker"):
        rounds.deploy(depending("load", {"billing/close": "success"}))
    rounds.deploy()
    with pytest.raises(DefinitionError, match=r"shop.load, which is not known"):  # It was removed.
        rounds.deploy(depending("report", {"load": "success"}))


def test_a_cycle_is_refused_with_its_path_also_across_apps(rounds: Rounds) -> None:
    rounds.world.register("close", app="billing")
    rounds.deploy(depending("load", {"billing/close": "success"}), depending("report", {"load": "done"}))
    path = "billing.close → shop.report → shop.load → billing.close"
    with pytest.raises(DefinitionError, match="none of them would start: ") as raised:
        deployed(rounds.world, {"close": depending("close", {"shop/report": "done"})}, "billing")
    assert _turned(str(raised.value).rpartition(": ")[2], "billing.close") == path
    with pytest.raises(DefinitionError, match=r"shop.own → shop.own"):
        rounds.deploy(depending("own", {"own": "success"}))


def _turned(path: str, first: str) -> str:
    """The same cycle from another start."""
    jobs = path.split(" → ")[:-1]
    place = jobs.index(first)
    return " → ".join([*jobs[place:], *jobs[:place], first])


# --- Deploys --------------------------------------------------------------------------------------


def test_a_deploy_keeps_what_is_met_and_drops_what_is_gone(rounds: Rounds) -> None:
    extract = rounds.run("extract")
    rounds.deploy(depending("load", {**BOTH, "send": "done"}))
    assert rounds.met() == {"extract": extract, "rates": None, "send": None}
    rounds.deploy(depending("load", {"extract": "done", "rates": "success"}))
    assert rounds.met() == {"extract": None, "rates": None}
    rounds.deploy()
    assert rounds.met() == {}


def test_a_deploy_that_removes_the_last_open_edge_starts_the_job(rounds: Rounds) -> None:
    extract = rounds.run("extract")
    rounds.deploy(depending("load", {"extract": "success"}))
    assert rounds.claim("load").upstream == f'{{"extract":"{extract}"}}'


def test_a_program_that_enqueues_does_not_change_the_edges(rounds: Rounds) -> None:
    rounds.world.register(depending("load", {"extract": "failed", "nothing": "done"}))
    assert rounds.met() == {"extract": None, "rates": None}
