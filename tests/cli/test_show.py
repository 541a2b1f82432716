"""`rota show`: one execution in full, and why it is not running."""

from __future__ import annotations

from rota.domain.job import Definition
from rota.domain.outcome import Error, Failed, GivenBack, Snoozed, Succeeded
from rota.domain.requirement import Needs
from rota.domain.served import Served
from rota.domain.status import Reason
from rota.ops import claim, finish, fleet
from tests.cli.shell import Seed, Shell


def why(shell: Shell, id: str) -> str:
    explained = shell.ok("show", id, "--json").rows["why"]
    return "None" if explained is None else str(explained["text"])


def test_a_failed_execution_shows_its_attempt_and_traceback(shell: Shell, seed: Seed) -> None:
    (id,) = seed.fail(message="no such host")
    out = shell.ok("show", id).out
    for part in (
        f"execution:  {id}",
        "status:     failed (error)",
        "error:      ValueError: no such host\njob:        shop.fail",
        "attempt 1 (fence 1):\n  status:   failed (error)\n  worker:   host:1\n  started:  ",
        ", took ",
        "ValueError: no such host",
        "      line 1",
        " UTC (",
        " by test",
    ):
        assert part in out, part
    row = shell.ok("show", id, "--json").rows
    assert (row["status"], row["why"]) == ("failed", None)
    (attempt,) = row["attempts"]
    assert attempt["isFinal"] is True
    assert attempt["error"]["traceback"].startswith("Traceback")


def test_attempts_have_the_numbers_that_the_function_saw_and_a_traceback_is_shown_once(
    shell: Shell, seed: Seed
) -> None:
    (id,) = seed.enqueue()
    failed = Failed(Error("ValueError", "no luck", "Traceback:\n  line 1\nValueError: no luck"))
    seen = []
    for outcome in (Snoozed(0), failed, failed, Succeeded('"ok"')):
        shell("run-now", id)
        claimed = seed.store.transact(claim.claim, seed.join(), Served.one("default", "shop", None, ["send"]), 1)
        (started,) = claimed.claims
        running = shell.ok("show", id, "--json").rows
        assert (running["attemptCount"], running["fence"]) == (started.attempts + 1, started.fence)
        seen.append((started.attempts + 1, started.fence))
        seed.store.transact(finish.finish, [finish.Finished(id, started.fence, outcome)])
    assert seen == [(1, 1), (1, 2), (2, 3), (3, 4)]
    row = shell.ok("show", id, "--json").rows
    assert [(one["attempt"], one["fence"]) for one in row["attempts"]] == seen
    assert (row["attemptCount"], row["retryCount"], row["fence"]) == (3, 2, 4)
    out = shell.ok("show", id).out
    assert "status:     success\n" in out
    assert "\nattempt 1 (fence 2):\n" in out
    assert out.count("      line 1") == 1
    assert "error:    ValueError: no luck (traceback as for fence 2)" in out


def test_a_replayed_execution_names_its_last_replay(shell: Shell, seed: Seed) -> None:
    (id,) = seed.fail()
    assert shell.ok("show", id, "--json").rows["replayedBy"] is None
    for words in (["dead", "replay", id], ["replay", id]):
        new = shell.ok(*words).out.strip()
        assert shell.ok("show", id, "--json").rows["replayedBy"] == new
        assert f"replayed:   as {new}\n" in shell.ok("show", id).out
        assert f"replay of:  {id}\n" in shell.ok("show", new).out


def test_a_success_shows_its_result(shell: Shell, seed: Seed) -> None:
    (id,) = seed.enqueue()
    seed.run(Succeeded('{"sent":1}'))
    assert '  result:   {"sent": 1}' in shell.ok("show", id).out
    assert shell.ok("show", id, "--json").rows["attempts"][0]["result"] == {"sent": 1}


def test_the_start_of_an_id_is_enough(shell: Shell, seed: Seed) -> None:
    one, two = seed.enqueue(count=2)
    assert f"execution:  {one}" in shell.ok("show", one[:-1].upper()).out
    assert "give more of the id" in shell.refused("show", two[:8])
    assert "there is no execution ffff" in shell.refused("show", "ffff")
    assert "an id cannot be empty" in shell.refused("show", "")


def test_it_says_why_it_is_not_running(shell: Shell, seed: Seed) -> None:
    first, second = seed.enqueue(count=2)
    (later,) = seed.enqueue(delay_s=3600)
    assert why(shell, first).startswith("no live worker of app shop serves queue mail")
    worker = seed.join(queues=["default"])
    assert why(shell, first).startswith("no live worker of app shop serves queue mail")
    live = seed.join(queues=["mail"])
    assert why(shell, first) == "next in line; waits for a free slot of a worker"
    assert why(shell, second) == "queued behind 1; waits for a free slot of a worker"
    assert why(shell, later).startswith("scheduled to start in 59 m")
    shell.ok("queues", "pause", "mail", "--note", "down")
    assert why(shell, second).startswith("queue mail is paused by cli")
    assert "(down): `rota queues resume mail`" in why(shell, second)
    shell.ok("queues", "resume", "mail")
    seed.claim(live, 1)
    assert why(shell, first) == "None"
    shell.ok("cancel", first)
    assert why(shell, first).startswith("asked to stop ")
    assert worker != live


def test_a_paused_job_says_by_whom_and_why(shell: Shell, seed: Seed) -> None:
    (id,) = seed.enqueue()
    shell.ok("jobs", "pause", "send", "--note", "no stamps")
    assert "(no stamps): `rota jobs resume send`; next in line" in why(shell, id)
    assert seed.claim(seed.join()) == []
    row = shell.ok("show", id, "--json").rows
    assert row["status"] == "waiting"
    assert row["why"]["text"].startswith("job shop.send is paused by cli")
    assert row["why"]["text"].endswith(" (no stamps): `rota jobs resume send`")


def test_without_any_worker_it_says_what_is_needed(shell: Shell, seed: Seed) -> None:
    seed.define("shop", Definition(name="train", needs=Needs(pool="cards", resources={"gpu": 1.0})))
    (id,) = seed.enqueue("train")
    told = why(shell, id)
    assert "serves queue mail, and it needs pool cards, 1 gpu: start one with `rota worker --pool`" in told
    seed.join(queues=["mail"])
    assert "no live worker has what it needs (pool cards, 1 gpu)" in why(shell, id)


def test_without_a_process_it_says_why_there_is_none(shell: Shell, seed: Seed) -> None:
    seed.define("shop", Definition(name="crunch", queue="mail", needs=Needs(isolated=True)))
    (id,) = seed.enqueue("crunch")
    worker = seed.join()
    ((_, fence),) = seed.claim(worker)
    error = Error("NotStarted", "no process could be started for the job: the app is broken")
    seed.store.transact(finish.finish, [finish.Finished(id, fence, GivenBack(Reason.NOT_BEGUN, 60, error))])
    assert "(no process could be started for it: its last attempt says why)" in why(shell, id)
    assert "NotStarted: no process could be started for the job: the app is broken" in shell.ok("show", id).out

    (second,), (other,) = seed.enqueue("crunch"), seed.enqueue()
    seed.store.transact(fleet.tell_trouble, worker, {"isolated jobs": "the app is broken"})
    assert why(shell, second) == "no live worker can start a process for it: the app is broken; next in line"
    assert why(shell, other) == "next in line; waits for a free slot of a worker"
    seed.join()
    assert why(shell, second) == "next in line; waits for a free isolated process of a worker", "one is enough"


def test_show_names_an_expired_lease(shell: Shell, seed: Seed) -> None:
    (id,) = seed.enqueue()
    live = seed.join(lease_s=0.3)
    seed.claim(live)
    told = ""
    while "the lease of its worker ran out" not in told:
        told = why(shell, id)
        assert told == "None" or "lease" in told
