"""Steps under a real worker: in its own process and in an isolated one."""

from __future__ import annotations

from datetime import datetime

from tests.support.waiting import PATIENCE_S
from tests.support.workers import Site


def test_a_job_knows_its_run(served: Site) -> None:
    run = served.app.workflows["places"].start([5, 6])
    first, items, id, scheduled_for = run.result(PATIENCE_S)
    assert first.pop("started_at") >= scheduled_for
    shared = {"id": id, "workflow": "places", "scheduled_for": scheduled_for}
    assert (id, first) == (run.id, {**shared, "step": "first", "index": None, "width": None})
    started_at = {item.pop("started_at") for item in items}
    assert {datetime.fromisoformat(text) for text in started_at} == {run.detail().started_at}
    assert items == [{**shared, "step": "place_alone", "index": index, "width": 2} for index in (0, 1)]
    assert served.enqueue("place", 1).result(PATIENCE_S) is None
