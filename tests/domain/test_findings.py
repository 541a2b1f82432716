"""What needs attention, rule by rule, from tables of facts."""

from __future__ import annotations

from typing import Any

import pytest

from rota.api.resources import dashboard
from rota.api.routes import table
from rota.domain.breaker import UNTIL_CLOSED, Circuit
from rota.domain.findings import evaluate
from rota.domain.findings.facts import (
    MINUTES,
    Approval,
    BrokenVersion,
    ErrorCount,
    Facts,
    JobPause,
    LeftOut,
    Minutes,
    Overdue,
    PauseChange,
    QueueState,
    Running,
    RunState,
    Usual,
    WayBack,
    Worker,
)
from rota.domain.findings.finding import Finding, Kind
from rota.domain.findings.queues import worked_off_per_s
from rota.domain.load import Lane

SECOND = 1_000_000
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
NOW = 1_000_000 * MINUTE
CHARGE = ("shop", "charge")


def minutes(failed: int = 0, success: int = 0, of: int = 15, before: int = 0) -> Minutes:
    """So many in each of the last `of` minutes, and `before` failures in each minute before that."""
    quiet = MINUTES - of
    return Minutes([success] * MINUTES, [before] * quiet + [failed] * of, [0] * MINUTES)


def error(**about: Any) -> ErrorCount:
    values = {"app": "shop", "job": "charge", "fingerprint": "ab12", "count": 412, "new": 412}
    at = {"first_at": NOW - 26 * MINUTE, "last_at": NOW}
    return ErrorCount(**{**values, **at, "text": "Reset: by peer", "first_version": 14, **about})


def worker(**about: Any) -> Worker:
    values = {"id": 7, "name": "w-7", "app": "shop", "state": "live", "queues": None, "jobs": frozenset({"charge"})}
    return Worker(**{**values, "offers": "{}", "slots": 8, "busy": 1, "lease_until": NOW + HOUR, **about})


def lane(**about: Any) -> Lane:
    return Lane(**{"app": "shop", "job": "charge", "queue": "pay", "ready": 64, "oldest_at": NOW - HOUR, **about})


def found(**facts: Any) -> list[Finding]:
    return evaluate(Facts(now=NOW, **facts))


def kinds(**facts: Any) -> list[str]:
    return [one.kind.value for one in found(**facts)]


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    fine = minutes(success=100)
    assert (
        found(minutes={CHARGE: fine}, lanes=[lane(oldest_at=NOW)], queues=[QueueState("pay")], workers=[worker()]) == []
    )


@pytest.mark.parametrize(
    ("failed", "success", "usual", "is_found"),
    [
        (10, 16, Usual(10_000, 40), True),
        (10, 16, None, True),
        (1, 100, Usual(10_000, 40), False),
        (10, 90, Usual(10_000, 40), True),
        (10, 90, Usual(9_000, 1_000), False),
        (10, 90, None, False),
        (0, 5, None, False),
    ],
)
def test_a_job_that_fails_more_than_usual(failed: int, success: int, usual: Usual | None, is_found: bool) -> None:
    known = {} if usual is None else {CHARGE: usual}
    assert kinds(minutes={CHARGE: minutes(failed, success)}, usual=known) == (["failing"] if is_found else [])


def test_a_failing_job_says_since_when_and_since_which_version() -> None:
    facts = {"minutes": {CHARGE: minutes(10, 16, of=26)}, "usual": {CHARGE: Usual(9_960, 40)}, "errors": [error()]}
    (one,) = found(**facts)
    assert one.text == "charge fails: 38 % of the last 15 minutes, usually 0.4 %"
    assert one.evidence == "since version 14, 412 failed for good with Reset: by peer"
    assert (one.since, one.affected, one.id) == (NOW - 25 * MINUTE, 412, "failing:job:shop/charge")
    assert [action.label for action in one.actions] == ["412 dead letters", "Pause job…"]
    assert (one.actions[0].link, one.actions[1].path) == ("/dead?group=ab12", "/api/v1/jobs/charge/pause?app=shop")
    assert one.series is not None
    assert (len(one.series.points), one.series.points[-1]) == (MINUTES, 10)


def test_a_failing_job_that_is_paused_says_so_and_offers_to_resume_it() -> None:
    pause = JobPause("shop", "charge", NOW - MINUTE, "ops", None, 0)
    (one,) = found(minutes={CHARGE: minutes(10, 16)}, errors=[error()], pauses=[pause])
    assert one.evidence == "the job is paused; since version 14, 412 failed for good with Reset: by peer"
    assert [action.label for action in one.actions] == ["412 dead letters", "Open job", "Resume job…"]
    assert one.actions[2].path == "/api/v1/jobs/charge/resume?app=shop"


BROKEN = BrokenVersion(14, NOW - 3 * HOUR, 25)
CODE, DATA = WayBack(14, 13, is_code=True, deploy=3), WayBack(14, 13)
NO_DEPLOY = WayBack(14, 13, is_code=True)


@pytest.mark.parametrize("letters", [[error(new=0, first_at=NOW - 3 * HOUR)], []])
@pytest.mark.parametrize("pauses", [[JobPause("shop", "charge", NOW - 2 * HOUR, "ops", None, 0)], []])
def test_a_job_that_has_only_failed_since_its_version_stays_found_without_new_failures(
    letters: list[ErrorCount], pauses: list[JobPause]
) -> None:
    facts = {"broken": {CHARGE: BROKEN}, "errors": letters, "pauses": pauses, "ways_back": {CHARGE: CODE}}
    (quiet,) = found(**facts)
    assert (quiet.kind, quiet.since, quiet.id) == ("failing", NOW - 3 * HOUR, "failing:job:shop/charge")
    assert quiet.text == "charge fails: no execution has succeeded since the first failure"
    assert "since version 14, " in quiet.evidence
    assert "Roll back" in [action.label for action in quiet.actions]
    (again,) = found(minutes={CHARGE: minutes(10, of=1)}, **facts)
    assert (again.id, again.since) == (quiet.id, quiet.since)


def test_the_age_of_failures_that_came_with_a_version_is_that_of_the_first_one() -> None:
    facts = {"minutes": {CHARGE: minutes(10, 16, of=2)}, "errors": [error(first_at=NOW - 3 * HOUR)]}
    (one,) = found(**facts, ways_back={CHARGE: CODE})
    assert one.since == NOW - 3 * HOUR


@pytest.mark.parametrize(
    ("facts", "advice"),
    [
        (
            {"broken": {CHARGE: BROKEN}, "ways_back": {CHARGE: CODE}},
            "roll back with `rota deploys use shop 3`, or deploy a fixed version of charge, "
            "then `rota jobs resume charge`",
        ),
        (
            {"broken": {CHARGE: BROKEN}, "ways_back": {CHARGE: DATA}},
            "roll back to version 13 of charge, or apply a fixed one, then `rota jobs resume charge`",
        ),
        (
            {"broken": {CHARGE: BROKEN}, "ways_back": {CHARGE: NO_DEPLOY}},
            "deploy a fixed version of charge, then `rota jobs resume charge`",
        ),
        (
            {"minutes": {CHARGE: minutes(10, 16)}, "errors": [error(first_version=1)]},
            "mend what makes it fail (`rota dead --job charge`) or deploy a fixed version, "
            "then `rota jobs resume charge`",
        ),
        ({"minutes": {CHARGE: minutes(10, 16)}, "errors": [error()]}, None),
        ({}, None),
    ],
    ids=["code", "data", "no deploy is kept", "no version", "rolled back", "does not fail"],
)
def test_a_paused_job_that_fails_is_rolled_back_before_it_is_resumed(facts: dict[str, Any], advice: str | None) -> None:
    pause = JobPause("shop", "charge", NOW - MINUTE, "ops", None, 25)
    about = {one.kind.value: one for one in found(**facts, pauses=[pause])}
    assert {one.advice for one in about.values()} == {advice}
    assert about["job_paused"].evidence.endswith("before resuming") == (advice is not None)
    assert about["job_paused"].actions[-1].command == "rota jobs resume charge"


@pytest.mark.parametrize(
    ("way", "command", "link"),
    [
        (WayBack(14, 13, is_code=True, deploy=3), "rota deploys use shop 3", None),
        (WayBack(14, 13), None, "/jobs/shop/charge?version=14&against=13"),
    ],
)
def test_a_job_that_fails_since_a_version_can_be_rolled_back(
    way: WayBack, command: str | None, link: str | None
) -> None:
    (one,) = found(minutes={CHARGE: minutes(10, 16)}, errors=[error()], ways_back={CHARGE: way})
    assert [action.label.strip("…") for action in one.actions] == ["412 dead letters", "Pause job", "Roll back"]
    assert (one.actions[2].command, one.actions[2].link) == (command, link)


def test_failures_that_began_before_the_known_minutes_began_with_the_first_letter() -> None:
    long_ago = error(first_at=NOW - 5 * HOUR)
    (one,) = found(minutes={CHARGE: minutes(10, 16, of=MINUTES)}, errors=[long_ago])
    assert one.since == NOW - 5 * HOUR


def test_new_dead_letters_are_found_unless_their_job_is_found_failing() -> None:
    (one,) = found(errors=[error(count=3, new=1), error(fingerprint="cd", new=0), error(job="ship", new=0)])
    assert (one.kind, one.affected, one.text) == ("dead_letters", 1, "charge has 1 new dead letter")
    (first,) = found(errors=[error(first_version=1)])
    assert first.evidence == "412 failed for good with Reset: by peer"


@pytest.mark.parametrize(
    ("workers", "lanes", "text"),
    [
        ([], [{}], "Queue pay cannot run: no live worker of app shop serves it"),
        ([{"queues": ["mail"]}], [{}], "Queue pay cannot run: no live worker of app shop serves it"),
        ([{"jobs": frozenset({"ship"})}], [{}], "charge cannot run: no live worker has this job"),
        ([{}], [{"requirements": '{"pool":"video"}'}], "charge cannot run: no live worker has pool video"),
        (
            [{"offers": '{"pools":["images"]}', "trouble": {"isolated jobs": "no memory"}}],
            [{"requirements": '{"isolated":true,"pool":"images"}'}],
            "charge cannot run: no live worker with pool images can start a process for it",
        ),
        (
            [{"trouble": {"stands still": "stopped"}}],
            [{}],
            "charge cannot run: no live worker can start a process for it",
        ),
        ([{"trouble": {"commands": "no memory"}}], [{"requirements": '{"isolated":true}'}], None),
        (
            [{"lease_until": NOW - 1, "stopped_at": NOW}],
            [{}],
            "Queue pay cannot run: no live worker of app shop serves it",
        ),
        ([{"state": "draining"}], [{}], "Queue pay cannot run: no live worker of app shop serves it"),
        ([{"app": "*", "jobs": frozenset({"*command"})}], [{"runs": "*command"}], None),
        ([{}], [{"job": "etl", "requirements": '{"workflow":true}'}], None),
        ([], [{"is_paused": True}], None),
        ([], [{"ready": 0}], None),
    ],
)
def test_work_that_no_live_worker_can_run(
    workers: list[dict[str, Any]], lanes: list[dict[str, Any]], text: str | None
) -> None:
    facts = {"workers": [worker(**one) for one in workers], "lanes": [lane(**one) for one in lanes]}
    texts = [one.text for one in found(**facts) if one.kind == "no_worker"]
    assert texts == ([] if text is None else [text])


@pytest.mark.parametrize(
    ("workers", "needs", "words"),
    [
        ([], "", "serves the queue"),
        ([{"jobs": frozenset({"ship"})}], "", "has their job"),
        ([{}], '{"pool":"video"}', "has the pool"),
        ([{"trouble": {"isolated jobs": "no memory"}}], '{"isolated":true}', "can start no process"),
    ],
)
def test_the_meaning_of_work_that_no_worker_can_run_follows_the_cause(
    workers: list[dict[str, Any]], needs: str, words: str
) -> None:
    facts = {"workers": [worker(**one) for one in workers], "lanes": [lane(requirements=needs)]}
    (one,) = (one for one in found(**facts) if one.kind == "no_worker")
    assert words in (one.means or "")
    assert (one.advice is not None) == bool(workers and "trouble" in workers[0])


def test_a_failing_job_without_dead_letters_does_not_say_that_they_are_kept() -> None:
    (replayed,) = found(broken={CHARGE: BROKEN})
    assert (replayed.means or "").endswith("and no dead letter of them is left.")
    (kept,) = found(broken={CHARGE: BROKEN}, errors=[error(new=0)])
    assert kept.means is None


def test_the_worker_that_could_run_it_and_stopped_last_is_named() -> None:
    gone = worker(stopped_at=NOW - HOUR, state="stopped", offers='{"pools":["video"]}', name="gpu-1")
    needs = lane(requirements='{"pool":"video","tags":["eu"]}')
    (one,) = found(workers=[worker(), gone], lanes=[lane(requirements='{"pool":"video"}')])
    assert one.evidence == "64 queued in pay, oldest 1 h. The last one, gpu-1, stopped 1 h ago"
    (other,) = found(workers=[worker(), gone], lanes=[needs])
    assert other.actions[1].command == "rota worker MODULE:shop --pool video --tag eu"


def test_what_one_job_lacks_for_two_reasons_is_two_findings_with_their_own_ages() -> None:
    gone = worker(stopped_at=NOW - 13 * MINUTE, state="stopped", offers='{"pools":["images"]}')
    facts = {
        "workers": [worker(), gone],
        "lanes": [
            lane(requirements='{"pool":"images"}', oldest_at=NOW - 21 * MINUTE),
            lane(requirements='{"pool":"video"}', oldest_at=NOW - 2 * MINUTE),
        ],
    }
    ages = {one.id: one.since for one in found(**facts)}
    assert ages == {
        "no_worker:job:shop/charge:pool images": NOW - 13 * MINUTE,
        "no_worker:job:shop/charge:pool video": NOW - 2 * MINUTE,
    }


@pytest.mark.parametrize(
    ("changes", "started_at", "rate"),
    [
        ([], 0, 0.1),
        ([("queue.resume", "pay", 20)], 0, 1.5),
        ([("queue.resume", "pay", 5)], 0, None),
        ([("queue.pause", "pay", 160), ("queue.resume", "pay", 10)], 0, 0.2),
        ([("queue.resume", "mail", 20)], 0, 0.1),
        ([("job.resume", "shop.charge", 20)], 0, 1.5),
        ([], NOW - 20 * SECOND, 1.5),
    ],
    ids=["served", "resumed", "just resumed", "a short pause", "another queue", "its job was resumed", "a new worker"],
)
def test_a_rate_is_of_the_time_in_which_the_queue_was_served(
    changes: list[tuple[str, str, int]], started_at: int, rate: float | None
) -> None:
    facts = Facts(
        now=NOW,
        rates_from=NOW - 300 * SECOND,
        workers=[worker(started_at=started_at)],
        pause_changes=[PauseChange(action, subject, NOW - ago * SECOND) for action, subject, ago in changes],
    )
    assert worked_off_per_s(facts, [lane(ended_per_s=0.1)]) == (None if rate is None else pytest.approx(rate))


def test_a_paused_queue_is_found_with_work_waiting_only() -> None:
    queue = QueueState("pay", NOW - 51 * MINUTE, "oncall", "provider is down", [None] * 58 + [3, 64])
    (one,) = found(queues=[queue], lanes=[lane(is_paused=True), lane(job="refund", is_paused=True, ready=6)])
    assert one.text == "Queue pay is paused by oncall: “provider is down”"
    assert (one.evidence, one.affected, one.since) == ("70 queued, oldest 1 h", 70, NOW - 51 * MINUTE)
    assert (one.actions[0].path, one.actions[0].is_confirmed) == ("/api/v1/queues/pay/resume", True)
    assert kinds(queues=[queue], lanes=[lane(ready=0, is_paused=True)]) == []


def test_a_paused_job_is_found_with_work_waiting_only() -> None:
    pause = JobPause("shop", "charge", NOW - HOUR, "rota", "3 executions in a row have failed", 5)
    assert kinds(pauses=[pause]) == ["job_paused"]
    assert kinds(pauses=[JobPause("shop", "charge", NOW, None, None, 0)]) == []


@pytest.mark.parametrize(
    ("before", "ready", "arrive", "end", "age", "is_found"),
    [
        (10, 64, 2.0, 1.0, HOUR, True),
        (60, 64, 2.0, 1.0, HOUR, False),
        (10, 64, 1.0, 2.0, HOUR, False),
        (10, 64, 2.0, 1.0, SECOND, False),
        (0, 5, 2.0, 1.0, HOUR, False),
        (None, 64, 2.0, 1.0, HOUR, False),
    ],
)
def test_a_growing_queue(before: int | None, ready: int, arrive: float, end: float, age: int, is_found: bool) -> None:
    busy = lane(ready=ready, arrivals_per_s=arrive, ended_per_s=end, oldest_at=NOW - age)
    queue = QueueState("pay", depth=[before] * MINUTES)
    assert kinds(queues=[queue], lanes=[busy], workers=[worker()]) == (["queue_growing"] if is_found else [])


def test_an_open_breaker_says_when_it_tries_and_what_waits() -> None:
    needs = lane(requirements='{"breakers":["bank"]}', may_start=False)
    facts = {"lanes": [needs], "workers": [worker()]}
    (one,) = found(circuits=[Circuit("bank", 5, NOW - MINUTE, NOW + 30 * SECOND)], **facts)
    assert one.text == "Breaker bank is open after 5 failures in a row"
    assert one.evidence == "64 queued of charge wait; one tries in 30 s"
    (by_hand,) = found(circuits=[Circuit("bank", 0, NOW, UNTIL_CLOSED)], **facts)
    assert by_hand.text == "Breaker bank was opened by an operator"


@pytest.mark.parametrize(
    ("outcome", "lately", "last_outcome", "kind"),
    [
        ("overlap", 3, "fired", "ticks_overlap"),
        ("overlap", 1, "overlap", "ticks_overlap"),
        ("overlap", 1, "fired", None),
        ("missed", 0, "missed", "ticks_missed"),
        ("outside_window", 2, "fired", "ticks_missed"),
        ("excluded", 5, "excluded", None),
    ],
)
def test_ticks_that_did_not_run(outcome: str, lately: int, last_outcome: str, kind: str | None) -> None:
    row = LeftOut(3, "shop", "sync", "sync_stock", outcome, 3, lately, NOW - HOUR, NOW - MINUTE, last_outcome, None)
    assert kinds(left_out=[row]) == ([] if kind is None else [kind])


def test_overlaps_name_the_execution_that_runs() -> None:
    row = LeftOut(3, "shop", "sync", "sync_stock", "overlap", 3, 3, NOW - HOUR, NOW - MINUTE, "overlap", "id-1")
    runs = Running(id="id-1", app="shop", job="sync_stock", started_at=NOW - 57 * MINUTE, attempt=1)
    (one,) = found(left_out=[row], running=[runs])
    assert one.text == "sync: 3 ticks did not run"
    assert one.evidence == "overlap: the execution before had not ended, it runs for 57 m; the last 1 m ago"
    assert [action.label for action in one.actions] == [
        "Open schedule",
        "Open execution",
        "Cancel execution…",
        "Pause schedule…",
    ]
    assert one.actions[2].path == "/api/v1/executions/id-1/cancel"


def test_an_execution_because_of_which_ticks_did_not_run_stays_found_without_the_overlap() -> None:
    about = {"id": "id-1", "app": "shop", "job": "sync_stock", "started_at": NOW - 57 * MINUTE, "attempt": 1}
    hangs = Running(**about, schedule="sync", left_out=3)  # type: ignore[arg-type]
    assert kinds(left_out=[OVERLAP], running=[hangs]) == ["ticks_overlap"]
    (one,) = found(running=[hangs])
    assert (one.kind, one.text, one.usual) == ("long_running", "sync_stock has run for 57 m", None)
    assert one.evidence == "attempt 1; 3 ticks of schedule sync did not run because of it"
    assert [action.label for action in one.actions] == ["Open", "Cancel…"]
    assert kinds(running=[Running(**about, schedule="sync")]) == []  # type: ignore[arg-type]


def test_a_schedule_that_is_not_looked_at() -> None:
    assert kinds(overdue=[Overdue(3, "shop", "sync", "sync_stock", NOW - HOUR)]) == ["schedule_overdue"]


@pytest.mark.parametrize(
    ("passed", "took", "is_found"),
    [
        (72 * MINUTE, [38 * MINUTE] * 5, True),
        (72 * MINUTE, [38 * MINUTE] * 4, False),
        (50 * MINUTE, [38 * MINUTE] * 30, False),
        (72 * MINUTE, [38 * MINUTE] * 29 + [80 * MINUTE], False),
        (30 * SECOND, [SECOND] * 30, False),
    ],
)
def test_an_execution_that_runs_longer_than_usual(passed: int, took: list[int], is_found: bool) -> None:
    one = Running(id="id-1", app="shop", job="backup", started_at=NOW - passed, attempt=1, took=took, percent=71)
    assert kinds(running=[one]) == (["long_running"] if is_found else [])


def test_workers_in_trouble_late_and_lost() -> None:
    full = worker(trouble={"commands": "No space left on device"})
    (one,) = found(workers=[full])
    assert one.text == "Worker w-7 can start no process for commands"
    assert one.evidence == "No space left on device; it runs 1 of 8 at once, and other jobs still start on it"
    assert kinds(workers=[worker(beats="0" * 38 + "12")]) == ["worker_late"]
    assert kinds(workers=[worker(beats="0" * 39 + "1")]) == []
    (silent,) = found(workers=[worker(lease_until=NOW - MINUTE)])
    assert (silent.kind, silent.severity) == ("worker_lost", "critical")
    dead = worker(id=8, state="lost", stopped_at=NOW - MINUTE, lease_until=NOW, held=12, cause="signal 9")
    (lost,) = found(workers=[worker(), dead])
    assert (lost.severity, lost.evidence) == ("warning", "it held 12 executions, which other workers get; signal 9")
    assert kinds(workers=[worker(state="lost", stopped_at=NOW - HOUR, lease_until=NOW - HOUR)]) == []


@pytest.mark.parametrize(
    ("waited", "deadline", "is_overdue"),
    [(25 * HOUR, None, True), (HOUR, None, False), (HOUR, NOW + MINUTE, True), (HOUR, NOW + 5 * HOUR, False)],
)
def test_an_approval_without_an_answer(waited: int, deadline: int | None, is_overdue: bool) -> None:
    one = Approval("id-1", "run-1", "shop", "Release?", NOW - waited, deadline)
    assert kinds(approvals=[one]) == ["approval_overdue" if is_overdue else "approval_waiting"]


def test_approvals_with_the_same_question_are_one_finding_about_the_oldest() -> None:
    several = [Approval(f"id-{at}", f"run-{at}", "shop", "Release?", NOW - at * MINUTE, None) for at in (1, 3, 2)]
    one, other = found(approvals=[*several, Approval("id-9", "run-9", "shop", "Refund?", NOW - MINUTE, None)])
    assert (one.text, one.affected) == ("No answer to “Release?” for 3 m", 3)
    assert one.evidence == "the run waits for a person; 2 other runs ask the same"
    assert (one.actions[0].link, one.tier) == ("/runs/run-3", 1)
    assert other.actions[0].link == "/runs/run-9"


def test_runs_that_are_paused_or_stuck() -> None:
    run = RunState("run-1", "shop", "etl", NOW - HOUR, "ops", "wait")
    assert kinds(paused_runs=[run]) == ["run_paused"]


def test_what_fails_comes_before_what_was_stopped_and_that_before_what_is_late() -> None:
    facts = {
        "minutes": {CHARGE: minutes(10, 16)},
        "pauses": [JobPause("shop", "mail", NOW - 10 * HOUR, "ops", "", 9_000)],
        "running": [
            Running(id="id", app="shop", job="backup", started_at=NOW - 9 * HOUR, attempt=1, took=[MINUTE] * 5)
        ],
        "overdue": [Overdue(1, "shop", "small", "sync", NOW - MINUTE)],
        "lanes": [lane(job="render", ready=500)],
    }
    assert kinds(**facts) == ["no_worker", "failing", "schedule_overdue", "job_paused", "long_running"]


def test_ticks_that_overlap_come_after_what_a_person_has_stopped() -> None:
    row = LeftOut(3, "shop", "sync", "sync_stock", "overlap", 900, 9, NOW - HOUR, NOW - MINUTE, "overlap", None)
    paused = QueueState("pay", NOW - MINUTE, "oncall", None)
    assert kinds(left_out=[row], queues=[paused], lanes=[lane(is_paused=True)]) == ["queue_paused", "ticks_overlap"]


OVERLAP = LeftOut(3, "shop", "sync", "sync_stock", "overlap", 3, 3, NOW - HOUR, NOW - MINUTE, "overlap", "id-1")
MISSED = LeftOut(4, "shop", "mail", "send", "missed", 3, 3, NOW - HOUR, NOW - MINUTE, "missed", None)
EVERYTHING: dict[str, Any] = {
    "minutes": {CHARGE: minutes(10, 16)},
    "errors": [error(), error(job="ship", new=1)],
    "ways_back": {CHARGE: DATA},
    "broken": {CHARGE: BROKEN},
    "pauses": [JobPause("shop", "charge", NOW - HOUR, "ops", None, 5)],
    "queues": [QueueState("pay", NOW - HOUR, "ops"), QueueState("mail", depth=[10] * MINUTES)],
    "lanes": [
        lane(is_paused=True),
        lane(queue="mail", arrivals_per_s=2.0, ended_per_s=1.0),
        lane(queue="mail", requirements='{"pool":"video"}'),
    ],
    "workers": [
        worker(name="vm:7", trouble={"commands": "No space left on device"}, beats="0" * 38 + "12"),
        worker(id=8, name="vm:8", lease_until=NOW - MINUTE),
    ],
    "circuits": [Circuit("bank", 5, NOW - MINUTE, NOW + 30 * SECOND)],
    "left_out": [OVERLAP, MISSED],
    "overdue": [Overdue(3, "shop", "sync", "sync_stock", NOW - HOUR)],
    "running": [
        Running(id="id-1", app="shop", job="sync_stock", started_at=NOW - HOUR, attempt=1),
        Running(id="id-2", app="shop", job="backup", started_at=NOW - HOUR, attempt=1, took=[MINUTE] * 5),
    ],
    "paused_runs": [RunState("run-1", "shop", "etl", NOW - HOUR, "ops", "wait")],
    "approvals": [
        Approval("id-3", "run-1", "shop", "Release?", NOW - HOUR, None),
        Approval("id-4", "run-2", "shop", "Release?", NOW - 25 * HOUR, None),
    ],
}
IDS = {"worker": {"7", "8"}, "run": {"run-1", "run-2"}, "approval": {"id-3", "id-4"}, "schedule": {"3", "4"}}
"""The ids of the things in EVERYTHING, by the name of the parameter in an address."""


@pytest.mark.parametrize("kind", list(Kind))
def test_every_action_of_a_finding_leads_to_an_address_that_exists(kind: Kind) -> None:
    routes, pages = table(), {address.path for address in dashboard.addresses()}
    actions = [action for one in found(**EVERYTHING) if one.kind is kind for action in one.actions]
    assert actions, "EVERYTHING has facts for every kind of finding"
    for action in actions:
        assert action.command or action.link or action.path, action.label
        for address, method in ((action.link, "GET"), (action.path, action.method)):
            if address is None:
                continue
            resolved = routes.find(address.partition("?")[0])
            assert resolved is not None, address
            methods, values = resolved
            assert method in methods, address
            assert address != action.link or methods["GET"].path in pages, address
            assert all(value in IDS.get(name, {value}) for name, value in values.items()), address
