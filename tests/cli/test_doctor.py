"""`rota doctor` and `rota migrate`: the database's own commands."""

from __future__ import annotations

import sqlite3

import rota
from rota.clock import SystemClock
from rota.domain.dependency import CountedEnd, Upstream
from rota.domain.job import Definition
from rota.domain.outcome import Succeeded
from rota.ops import define, fleet, job_pauses
from rota.store import migrate
from rota.store.dependencies import Edge
from tests.cli.shell import Answer, Seed, Shell
from tests.support.world import NO_RETRY

MISSPELT = {"ROTA_LAESE_S": "3"}


def verdicts(answer: Answer) -> dict[str, tuple[str, str]]:
    """The worst line of each check."""
    rows = sorted(answer.rows, key=lambda row: ("ok", "warn", "fail").index(row["verdict"]))
    return {row["check"]: (row["verdict"], row["found"]) for row in rows}


def test_a_healthy_database_is_ok(shell: Shell, seed: Seed) -> None:
    seed.join(version=rota.__version__)
    found = verdicts(shell.ok("doctor", "--json"))
    # How fast and how full the disk is, is not up to the test.
    assert {verdict for name, (verdict, _) in found.items() if name not in ("write", "disk")} == {"ok"}
    names = "settings write files journal disk sqlite schema clock workers leases versions deploys attention queues"
    assert list(found) == [*names.split(), "dependencies", "dead letters", "retention"]
    assert found["sqlite"][1] == sqlite3.sqlite_version
    assert "journal mode wal" in found["journal"][1]
    assert shell.ok("doctor").out.splitlines()[0].split()[:2] == ["ok", "settings"]


def test_a_removed_upstream_and_a_cycle_are_warned_of(shell: Shell, seed: Seed) -> None:
    load = Definition(name="load", depends_on=[Upstream("shop", "extract")])
    extract, other = Definition(name="extract"), Definition(name="extract", depends_on=[Upstream("shop", "load")])
    seed.deploy("ops", Definition(name="page", depends_on=[Upstream("shop", "send")]))
    seed.deploy("shop", extract, load)
    seed.deploy("shop", other, Definition(name="load"))
    edge = Edge("default", "shop", "load", "shop", "extract", CountedEnd.SUCCESS)
    seed.store.transact(lambda tx: tx.run("put_edges", rows=[edge]))  # As a roll-back may leave it.
    found = [row["found"] for row in shell.ok("doctor", "--json").rows if row["check"] == "dependencies"]
    assert found[0] == "job ops.page depends on shop.send, which the deploy in force does not have"
    assert found[1].startswith("jobs depend on each other: shop.")


def test_troubles_are_warned_of_with_advice(shell: Shell, seed: Seed) -> None:
    seed.fail()
    seed.enqueue(count=2)
    held = seed.enqueue(job="fail", queue="default")
    seed.join(version="0.0.1", queues=["default"])
    gone = seed.join(lease_s=0.3, queues=["default"])
    seed.store.transact(define.pause_queue, "default", "default", "test", "")
    seed.store.transact(job_pauses.pause, "default", "shop", "fail", "rota", "3 executions in a row have failed")
    while (answer := verdicts(shell("doctor", "--json", env=MISSPELT)))["leases"][0] == "ok":
        pass
    assert answer["settings"] == ("warn", "ROTA_LAESE_S is not a setting")
    (advice,) = [row["advice"] for row in shell("doctor", "--json", env=MISSPELT).rows if row["verdict"] == "warn"][:1]
    assert advice == "did you mean ROTA_LEASE_S?"
    assert answer["versions"][0] == "warn"
    assert "0.0.1" in answer["versions"][1]
    assert answer["dead letters"] == ("warn", "1 dead letter")
    found = [(row["found"], row["advice"]) for row in shell.ok("doctor", "--json").rows if row["check"] == "queues"]
    assert found == [
        ("queue default is paused", "`rota queues resume default`"),
        ("job shop.fail is paused by rota: 3 executions in a row have failed", "`rota jobs resume fail`"),
    ]
    assert held
    assert gone
    rows = [row for row in shell.ok("doctor", "--json").rows if row["check"] == "attention"]
    needs = {row["found"].partition(". ")[0]: row["advice"] for row in rows}
    lost = next(text for text in needs if text.startswith("Worker "))
    assert needs.pop(lost) == "`rota workers`"
    assert needs == {
        "Queue mail cannot run: no live worker of app shop serves it": "`rota worker MODULE:shop`",
        "Queue default is paused by test": "`rota queues resume default`",
        "Job fail is paused by rota: “3 executions in a row have failed”": "`rota jobs resume fail`",
        "fail has 1 new dead letter": "`rota dead --job fail`",
    }


def test_a_paused_job_that_fails_is_to_be_rolled_back_before_it_is_resumed(shell: Shell, seed: Seed) -> None:
    retry = NO_RETRY.retry.describe()
    for words in ("first", "second"):
        seed.deploy("shop", Definition(name="fail", description=words, retry=retry))
    seed.fail()
    seed.store.transact(job_pauses.pause, "default", "shop", "fail", "ann", "")
    rows = shell.ok("doctor", "--json").rows
    found = {row["check"]: row["advice"] for row in rows if row["check"] in ("attention", "queues")}
    advice = "roll back with `rota deploys use shop 1`, or deploy a fixed version of fail, then `rota jobs resume fail`"
    assert found == {"attention": advice, "queues": advice}


def test_a_worker_that_can_start_no_processes_is_named(shell: Shell, seed: Seed) -> None:
    worker = seed.join(version=rota.__version__)
    seed.store.transact(fleet.tell_trouble, worker, {"commands": "Too many open files"})
    verdict, found = verdicts(shell.ok("doctor", "--json"))["workers"]
    assert verdict == "warn"
    assert found.endswith("can start no process for commands: Too many open files")
    (row,) = shell.ok("workers", "--json").rows
    assert row["trouble"] == {"commands": "Too many open files"}
    assert "live, starts no processes" in shell.ok("workers").out
    seed.store.transact(fleet.tell_trouble, worker, {})
    assert verdicts(shell.ok("doctor", "--json"))["workers"][0] == "ok"


def test_a_worker_process_that_stands_still_is_named(shell: Shell, seed: Seed) -> None:
    worker = seed.join(version=rota.__version__)
    seed.store.transact(fleet.tell_trouble, worker, {"commands": "Too many open files"})
    seed.store.transact(fleet.tell_standstill, worker, "a debugger holds it")
    found = [row["found"] for row in shell.ok("doctor", "--json").rows if row["check"] == "workers"]
    assert any("stands still: a debugger holds it" in words for words in found)
    assert any("can start no process for commands" in words for words in found)
    assert "live, stands still" in shell.ok("workers").out
    seed.store.transact(fleet.tell_standstill, worker, "")
    assert "live, starts no processes" in shell.ok("workers").out


def test_what_is_broken_fails_with_exit_code_1(shell: Shell) -> None:
    answer = shell("doctor", "--json")
    assert answer.code == 1
    assert verdicts(answer)["database"][1].startswith("there is no database at ")
    assert not (shell.folder / "rota.db").exists()
    assert verdicts(shell("doctor", "--json", env={"ROTA_POLL_S": "x"}))["settings"][0] == "fail"
    (shell.folder / "rota.db").touch()
    assert verdicts(shell("doctor", "--json"))["schema"][0] == "fail"
    (shell.folder / "rota.db").write_text("nonsense " * 500)
    answer = shell("doctor", "--json")
    assert (answer.code, verdicts(answer)["database"][0]) == (1, "fail")


def test_a_clock_that_went_back_is_noticed(shell: Shell, seed: Seed) -> None:
    connection = sqlite3.connect(seed.path)
    seed.join()
    connection.execute("UPDATE worker SET heartbeat_at = ?", (SystemClock().now() + 3_600_000_000,))
    connection.commit()
    connection.close()
    verdict, found = verdicts(shell.ok("doctor", "--json"))["clock"]
    assert verdict == "warn"
    assert found.startswith("the database holds times 59 m")


def test_migrate_creates_and_then_has_nothing_to_do(shell: Shell) -> None:
    dry = shell.ok("migrate", "--dry-run").out
    assert all(f"-- {one.name}\n" in dry for one in migrate.known("sqlite"))
    assert "CREATE TABLE execution" in dry
    assert not (shell.folder / "rota.db").exists()
    applied = shell.ok("migrate")
    assert applied.out.split() == [one.name for one in migrate.known("sqlite")]
    again = shell.ok("migrate")
    assert (again.out, again.err) == ("", f"{shell.folder / 'rota.db'} is up to date\n")
    assert shell.ok("migrate", "--dry-run").out == ""


def test_history_that_should_be_gone_is_noticed(shell: Shell, seed: Seed) -> None:
    assert verdicts(shell.ok("doctor", "--json"))["retention"] == (
        "ok",
        "history is kept 30 days; there is no history yet",
    )
    seed.enqueue(count=3)
    seed.run(Succeeded("1"))
    assert verdicts(shell.ok("doctor", "--json"))["retention"][0] == "ok"
    connection = sqlite3.connect(seed.path)
    connection.execute("UPDATE finished SET finished_at = finished_at - 33 * 86400000000")
    connection.commit()
    connection.close()
    verdict, found = verdicts(shell.ok("doctor", "--json"))["retention"]
    assert verdict == "warn"
    assert "3 executions should have been deleted long ago" in found
    assert verdicts(shell("doctor", "--json", env={"ROTA_RETENTION_DAYS": "0"}))["retention"][0] == "ok"
