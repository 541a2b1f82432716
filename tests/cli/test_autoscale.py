"""A range of processes and `rota load` on the command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.shell import Seed, Shell
from tests.support.waiting import eventually

FIGURES = [
    "ready",
    "oldestReadyS",
    "dueSoon",
    "running",
    "slots",
    "freeSlots",
    "busyShare",
    "arrivalsPerS",
    "endedPerS",
    "runS",
    "suggestedSlots",
    "suggestedWorkers",
]


def test_load_has_the_keys_that_autoscalers_rely_on(shell: Shell, seed: Seed) -> None:
    seed.enqueue(count=200)
    worker = seed.join()
    seed.claim(worker, 3)
    found = shell.ok("load", "--json").rows
    assert list(found) == ["at", "targetS", "windowS", "slotsOfAWorker", "total", "groups"]
    assert (found["targetS"], found["slotsOfAWorker"]) == (60.0, 4)
    assert list(found["total"]) == FIGURES
    mail = next(group for group in found["groups"] if group["queue"] == "mail")
    assert list(mail) == [*FIGURES, "app", "queue", "pool", "paused"]
    assert (mail["app"], mail["pool"], mail["paused"]) == ("shop", "default", False)
    assert (mail["ready"], mail["running"], mail["slots"], mail["freeSlots"]) == (197, 3, 4, 1)
    assert mail["suggestedSlots"] >= 4
    assert mail["oldestReadyS"] >= 0


def test_load_is_narrowed_and_its_target_is_heeded(shell: Shell, seed: Seed) -> None:
    seed.enqueue(count=120)
    seed.enqueue("fail", count=10, queue="default")

    def total(*words: str) -> dict[str, float]:
        answer: dict[str, float] = shell.ok("load", "--json", *words).rows["total"]
        return answer

    assert total()["ready"] == 130
    assert total("--queue", "mail")["ready"] == 120
    assert total("--queue", "default", "--app", "shop", "--pool", "default")["ready"] == 10
    assert total("--pool", "cpu")["ready"] == total("--app", "other")["ready"] == 0
    slow, fast = total("--queue", "mail", "--target", "10m"), total("--queue", "mail", "--target", "1s", "--slots", "5")
    assert slow["suggestedSlots"] < fast["suggestedSlots"]
    assert fast["suggestedWorkers"] == -(-fast["suggestedSlots"] // 5)
    assert "--target" in shell.refused("load", "--target", "0")
    assert "--slots" in shell.refused("load", "--slots", "0")


def test_load_for_people_has_a_line_for_each_group_and_one_for_all(shell: Shell, seed: Seed) -> None:
    seed.enqueue(count=2)
    shell.ok("queues", "pause", "mail")
    lines = shell.ok("load").out.splitlines()
    assert lines[0].split()[:4] == ["APP", "QUEUE", "POOL", "READY"]
    assert any(line.split()[:5] == ["shop", "mail", "(paused)", "default", "2"] for line in lines)
    assert lines[-1].startswith("(all)")


@pytest.mark.parametrize("url", ["sqlite:///nothing/here.db", "sqlite:///missing.db", "postgresql://127.0.0.1:1/none"])
def test_a_database_that_cannot_be_read_is_no_load_of_zero(shell: Shell, url: str) -> None:
    shell.refused("load", "--json", "--url", url)


def test_an_empty_database_has_no_load(shell: Shell) -> None:
    shell.ok("migrate")
    assert shell.ok("load", "--json").rows["groups"] == []
    assert shell.ok("load").err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("0", "between 1 and 256"),
        ("0-4", "between 1 and 256"),
        ("2-300", "between 1 and 256"),
        ("8-2", "such as 2-8"),
        ("few", "a range such as 2-8"),
        ("1-", "a range such as 2-8"),
    ],
)
def test_processes_that_cannot_be_are_refused(shell: Shell, words: str, why: str) -> None:
    assert why in shell.refused("worker", "shop:app", "--processes", words)
    assert why in shell.refused("worker", "shop:app", env={"ROTA_PROCESSES": words})


def test_workers_show_how_many_processes_there_are_and_may_be(shell: Shell, worker: Callable[..., None]) -> None:
    worker("--processes", "2-5", "--concurrency", "3")
    eventually(lambda: shell("workers").out.count("live") == 2, what="two processes")
    heading, *lines = shell.ok("workers").out.splitlines()
    place = heading.split().index("PROCESSES")
    assert [line.split()[place] for line in lines] == ["2/2–5", "2/2–5"]
    assert [line.split()[heading.split().index("BUSY")] for line in lines] == ["0/3", "0/3"]
    for row in shell.ok("workers", "--json").rows:
        assert (row["processes"], row["slots"]) == ({"live": 2, "least": 2, "most": 5}, 3)
