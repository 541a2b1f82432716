"""`rota deploys`, and what other commands say of deploys."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from rota.domain.schedule import Spec
from rota.domain.trigger import Every
from rota.ops import deploy, fleet
from rota.store import deploys, schedule_reader
from tests.cli.shell import HANG_S, SEND, SHOP, Seed, Shell
from tests.cli.test_doctor import verdicts
from tests.support.newcomers import newcomer
from tests.support.waiting import eventually

HOURLY = Spec(job="send", trigger=Every(3_600_000_000))


def start(seed: Seed, **schedules: Spec) -> int:
    """A worker of the deploy with these schedules."""
    number = seed.store.transact(deploy.declare, "default", "shop", [SEND], [], schedules)
    joining = newcomer("shop", name="host:1", jobs=[SEND.name], concurrency=4, deploy=number)
    return seed.store.transact(fleet.join, joining, 600.0)


def schedules(seed: Seed) -> list[str]:
    return [row.name for row in seed.store.read(schedule_reader.schedules, "default", "shop")]


@pytest.fixture
def workers(seed: Seed) -> tuple[int, int]:
    """An old and a new one."""
    return start(seed, clean=HOURLY), start(seed, clean=HOURLY, backup=HOURLY)


def test_deploys_are_listed_by_precedence(shell: Shell, workers: tuple[int, int]) -> None:
    rows = shell.ok("deploys", "--json").rows
    told = [(row["deploy"], row["isInForce"], row["workers"], row["jobs"], row["schedules"]) for row in rows]
    assert told == [(2, True, 1, 1, 2), (1, False, 1, 1, 1)]
    heading, first, second = shell.ok("deploys").out.splitlines()
    assert heading.split()[:2] == ["APP", "DEPLOY"]
    assert first.split()[:4] == ["shop", "2", "yes", "1"]
    assert second.split()[:3] == ["shop", "1", "1"]


def test_without_deploys_the_list_says_how_to_make_one(shell: Shell, seed: Seed) -> None:
    assert "rota worker" in shell.ok("deploys").err


def test_an_older_deploy_is_put_in_force(shell: Shell, seed: Seed, workers: tuple[int, int]) -> None:
    assert shell.ok("deploys", "use", "shop", "1").err == "deploy 1 of app shop is in force\n"
    assert schedules(seed) == ["clean"]
    assert [row["deploy"] for row in shell.ok("deploys", "--json").rows if row["isInForce"]] == [1]


def test_a_deploy_without_workers_is_in_force_later(shell: Shell, seed: Seed, workers: tuple[int, int]) -> None:
    seed.store.transact(fleet.leave, workers[0])
    assert "as soon as a worker starts" in shell.ok("deploys", "use", "shop", "1").err
    assert schedules(seed) == ["backup", "clean"]


def test_an_unknown_deploy_or_app_is_refused(shell: Shell, workers: tuple[int, int]) -> None:
    assert "app 'shop' has no deploy 9" in shell.refused("deploys", "use", "shop", "9")
    assert "app 'nobody' has no deploy 1" in shell.refused("deploys", "use", "nobody", "1")


def test_workers_are_listed_with_their_deploys(shell: Shell, workers: tuple[int, int]) -> None:
    assert [row["deploy"] for row in shell.ok("workers", "--json").rows] == [1, 2]
    assert [line.split()[-1] for line in shell.ok("workers").out.splitlines()] == ["DEPLOY", "1", "2"]


def test_the_doctor_tells_of_several_live_deploys(shell: Shell, seed: Seed, workers: tuple[int, int]) -> None:
    verdict, found = verdicts(shell.ok("doctor", "--json"))["deploys"]
    assert verdict == "ok"
    assert "app shop has live workers of the deploys 2 (in force), 1" in found
    seed.store.transact(fleet.leave, workers[0])
    assert "have the same deploy" in verdicts(shell.ok("doctor", "--json"))["deploys"][1]


def test_the_doctor_tells_of_a_deploy_in_force_without_a_live_worker(
    shell: Shell, seed: Seed, workers: tuple[int, int]
) -> None:
    seed.store.transact(fleet.leave, workers[1])
    verdict, found = verdicts(shell.ok("doctor", "--json"))["deploys"]
    assert (verdict, found) == ("ok", "app shop: deploy 2 is in force without a live worker; deploy 1 has one")


def test_what_rota_dev_runs_is_in_force_although_a_newer_deploy_is_live(
    shell: Shell, seed: Seed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def numbers_in_force() -> list[int]:
        return [row.number for row in seed.store.read(deploys.all_deploys, "default") if row.is_in_force]

    monkeypatch.setenv("ROTA_URL", f"sqlite:///{seed.path}")
    module: dict[str, Any] = {}
    exec(SHOP, module)
    assert module["app"].declare() == 1
    module["app"].close()
    start(seed, backup=HOURLY)
    assert numbers_in_force() == [2]
    running = shell.start("dev", "shop:app")
    try:
        eventually(lambda: numbers_in_force() == [1], what="the deploy of `rota dev`")
    finally:
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=HANG_S)
    assert schedules(seed) == []
