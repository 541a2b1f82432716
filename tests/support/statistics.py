"""What the statistics say, and what they should say by the tables of executions that have not been deleted."""

from __future__ import annotations

from collections import Counter
from unittest import mock

from rota.domain import statistics
from rota.domain.statistics import Label, Metric, Window
from rota.domain.workflow.wait import is_wait
from rota.ops import statistics as operations
from rota.store.port import Store
from rota.views import statistics as view_of
from rota.views.statistics import Asked, Series
from tests.support.tables import table

ALL_TIME_S = 100 * 365 * 24 * 3600
MOST_JOBS = 1_000
COUNTS = [Metric(one.value) for one in statistics.Count]
Counted = Counter[tuple[str, str, str]]
"""By app, job and metric."""


def counted(store: Store, namespace: str = "default") -> Counted:
    """The counts of all time."""
    window = Window(0, ALL_TIME_S * 10**6, ALL_TIME_S)
    found: Counted = Counter()
    with mock.patch.object(statistics, "MOST_SERIES", MOST_JOBS):  # A proof has more jobs than a chart shows.
        for metric in COUNTS:
            asked = Asked([metric], [Label.APP, Label.JOB], window)
            for series in store.read(view_of.read, namespace, asked).series:
                found[series.labels["app"], series.labels["job"], series.metric] += int(series.points[0][1] or 0)
    return +found


def recorded(store: Store, namespace: str = "default") -> Counted:
    """The same by the history, without retries."""
    rows = [row for row in table(store, "execution") if row["namespace"] == namespace and not is_wait(row["job"])]
    ends = {str(row["id"]): row["status"] for row in table(store, "finished") if row["final"]}
    found: Counted = Counter()
    for row in rows:
        found[row["app"], row["job"], "created"] += 1
        if str(row["id"]) in ends:
            found[row["app"], row["job"], ends[str(row["id"])]] += 1
    return found


def check(store: Store, namespace: str = "default") -> None:
    """The statistics agree with the history, before they are folded, in between, and after that."""
    expected = recorded(store, namespace)
    for _ in range(3):
        found = counted(store, namespace)
        assert Counter({key: count for key, count in found.items() if key[2] != "retries"}) == expected
        store.transact(operations.fold, 3)
    fold_all(store)
    assert Counter({key: count for key, count in counted(store, namespace).items() if key[2] != "retries"}) == expected


def fold_all(store: Store) -> int:
    folded = 0
    while some := store.transact(operations.fold):
        folded += some
    assert table(store, "stat_delta") == []
    return folded


def lately(store: Store, *metrics: Metric, by: tuple[Label, ...] = (), namespace: str = "default") -> list[Series]:
    """The last two hours and the minute to come, in minutes."""
    now = store.read(lambda view: view.now)
    window = statistics.window(now - 7200 * 10**6, now + 60 * 10**6, 60, now)
    return store.read(view_of.read, namespace, Asked(metrics, by, window)).series
