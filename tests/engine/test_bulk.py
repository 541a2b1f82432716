"""Long writes beside workers whose leases are short: on SQLite no other process can write while one lasts."""

from __future__ import annotations

import pytest

from rota import Unique
from rota.ops import submission
from tests.support.waiting import PATIENCE_S
from tests.support.workers import Site

LONG_S = 600.0
"""50,000 items take some seconds of processor time, which a busy machine may give in some minutes."""
pytestmark = pytest.mark.timeout(2 * LONG_S)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_BUSY_S", str(LONG_S))


@pytest.mark.parametrize(
    ("count", "lease_s"),
    [(2_000, 3), pytest.param(submission.MOST_ITEMS, 10, marks=pytest.mark.prove)],
    ids=["sample", "limit"],
)
@pytest.mark.parametrize("on_conflict", ["return", "replace"])
def test_no_worker_loses_its_lease_during_large_submissions_with_keys(
    site: Site, count: int, lease_s: float, on_conflict: str
) -> None:
    """One from inside a job and one from outside, at the same time."""
    many = site.app.jobs["echo"].options(unique=Unique(on_conflict=on_conflict), queue="later")
    if on_conflict == "replace":  # Every key has a holder that must be ended.
        for first in (0, count):
            many.enqueue_many(range(first, first + count))
    flags = ("--queues", "default", "--concurrency", "2")
    workers = [site.worker(*flags, lease_s=lease_s, busy_s=LONG_S) for _ in range(2)]
    before = [row.id for row in site.live()]
    neighbours = [site.enqueue("gated", "go") for _ in range(2)]
    for x in neighbours:
        site.wait_started(x)
    inside = site.enqueue("fan_out", 0, count, "later", on_conflict)
    outside = many.enqueue_many(range(count, 2 * count))
    assert inside.result(LONG_S) == count
    assert sum(handle.created for handle in outside) == count
    site.open("go")
    assert [x.result(PATIENCE_S) for x in neighbours] == ["done", "done"]
    assert [x.info().fence for x in [*neighbours, inside]] == [1, 1, 1]
    assert [row.id for row in site.live()] == before
    assert not any("killing it" in worker.log() for worker in workers)


@pytest.mark.prove
def test_no_worker_loses_its_lease_during_a_write_that_takes_longer_than_a_lease(file_site: Site) -> None:
    """A large submission takes that long on a machine that is slow or busy."""
    lease_s = 4.0
    workers = [file_site.worker("--concurrency", "2", lease_s=lease_s) for _ in range(2)]
    before = [row.id for row in file_site.live()]
    neighbours = [file_site.enqueue("gated", "go") for _ in range(2)]
    for x in neighbours:
        file_site.wait_started(x)
    long = file_site.enqueue("write_for", 2.5 * lease_s)
    assert long.result(PATIENCE_S) == "done"
    file_site.open("go")
    assert [x.result(PATIENCE_S) for x in neighbours] == ["done", "done"]
    assert [x.info().fence for x in [*neighbours, long]] == [1, 1, 1]
    assert [row.id for row in file_site.live()] == before
    assert not any("killing it" in worker.log() for worker in workers)
