"""Invalid content: refused at enqueue if possible; otherwise it ends one execution and affects no other."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rota import App, Context, Handle
from rota.domain.errors import ArgumentsError
from tests.faults.trial import PATIENCE_S, Trial
from tests.faults.trial_jobs import BAD_RESULTS
from tests.kill.jobs import PATIENT
from tests.support import forks
from tests.support.databases import fresh_database
from tests.support.proving import proof

pytestmark = pytest.mark.timeout(3 * PATIENCE_S)

LARGE = 100_000_000
COMMAND = ("enqueue", "stepped", "--args", "-")
BAD_TEXTS: dict[str, bytes] = {
    "nothing": b"",
    "an end in the middle": b'{"ticket": "t',
    "more after the end": b'{"ticket": "t"} {}',
    "no object": b'["t"]',
    "no text as a name": b'{1: "t"}',
    "single quotes": b"{'ticket': 't'}",
    "a trailing comma": b'{"ticket": "t",}',
    "a comment": b'{"ticket": "t"} // the ticket',
    "NaN": b'{"ticket": "t", "before": NaN}',
    "Infinity": b'{"ticket": "t", "before": -Infinity}',
    "a number that is too large": b'{"ticket": "t", "before": 1e100000}',
    "a lone surrogate": rb'{"ticket": "t", "before": "\ud800"}',
    "a NUL": rb'{"ticket": "t", "before": "a\u0000b"}',
    "a raw NUL": b'{"ticket": "t", "before": "a\0b"}',
    "a raw line feed": b'{"ticket": "t", "before": "a\nb"}',
    "no UTF-8": b'{"ticket": "t", "before": "\xff\xfe"}',
    "a byte order mark": b'\xef\xbb\xbf{"ticket": "t"}',
    "UTF-16": '{"ticket": "t"}'.encode("utf-16"),
    "too deep": b'{"ticket": "t", "before": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}
BAD_VALUES: dict[str, Any] = {
    "nan": math.nan,
    "infinity": [math.inf],
    "surrogate": "\ud800",
    "nul": "a\x00b",
    "object": object(),
    "set": {1},
    "deep": BAD_RESULTS["deep"],
    "circle": BAD_RESULTS["circle"],
    "key": {1: 2, (1, 2): 3},
}


@pytest.fixture(scope="module", params=["sqlite", proof("postgres")])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """One worker for all these tests: none of them may do it any harm."""
    url = fresh_database() if request.param == "postgres" else ""
    with Trial(tmp_path_factory.mktemp("content"), url) as trial:
        trial.worker(lease_s=600)
        trial.joined(1)
        yield trial
        trial.check()


def _others_go_on(served: Trial) -> None:
    assert served.result(served.enqueue("stepped")) == 1
    served.check(drained=False)


def test_payload_of_a_hundred_megabytes(served: Trial) -> None:
    """As an argument by Python and by the command line, as a result, and none of it reaches the database."""
    before = len(served.executions())
    with pytest.raises(ArgumentsError, match="100,000,026 bytes"):
        served.app.jobs["stepped"].enqueue("t", "x" * LARGE)
    told = _enqueue(served, b'{"ticket": "t", "before": "' + b"x" * LARGE + b'"}')
    assert told.returncode == 2, told.stderr
    assert b"bytes" in told.stderr
    assert len(served.executions()) == before
    x = served.enqueue("huge", megabytes=100)
    served.ends_as(x, "failed", "bad_result")
    _others_go_on(served)


def test_bad_json_of_every_kind(served: Trial) -> None:
    before = len(served.executions())
    for kind, value in BAD_VALUES.items():
        with pytest.raises(ArgumentsError):
            print(kind, served.app.jobs["awkward"].enqueue("t", value))
    assert len(served.executions()) == before
    _others_go_on(served)


def _enqueue(served: Trial, text: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "rota", *COMMAND],
        cwd=served.folder,
        env=served.fleet.environment,
        input=text,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_result_that_cannot_be_serialised(served: Trial) -> None:
    for kind in BAD_RESULTS:
        served.ends_as(served.enqueue("awkward", kind=kind), "failed", "bad_result")
    _others_go_on(served)


def test_unknown_job(served: Trial) -> None:
    """It was enqueued by newer code than the worker has. It waits in the queue for a worker that has it."""
    newer = App("trial", url=served.url)

    @newer.job(retry=PATIENT)
    def brand_new(ctx: Context, ticket: str) -> None: ...

    x = _by(newer, served, "brand_new")
    assert served.result(served.enqueue("stepped")) == 1
    assert (str(x.status()), served.history(x)) == ("queued", [])
    assert str(x.cancel()) == "cancelled"
    served.ends_as(x, "cancelled", "cancelled")
    newer.close()
    _others_go_on(served)


def test_changed_signature(served: Trial) -> None:
    """It was enqueued by older code. No worker can run it any more, so it fails as a dead letter with a clear error."""
    older = App("trial", url=served.url)

    @older.job(retry=PATIENT)
    def changed(ctx: Context, ticket: str, cents: str = "old") -> None: ...

    x = _by(older, served, "changed")
    served.ends_as(x, "failed", "bad_arguments")
    older.close()
    (attempt,) = served.history(x)
    assert "amount" in (attempt.error or "")
    assert served.fences(x, "start") == []
    _others_go_on(served)


def _by(app: App, served: Trial, job: str) -> Handle[Any]:
    """An execution that another version of the app has enqueued."""
    ticket = served.asked()
    x = app.jobs[job].enqueue(ticket)
    served.answered(ticket, x.id)
    return x


def test_job_that_kills_its_worker_every_time(served: Trial) -> None:
    """Three times; then it is a dead letter. Executions that ran beside it the first time are not charged."""
    innocent = served.enqueue("stepped", before="go")
    served.wait_for(innocent, "start")
    x = served.enqueue("deadly")
    served.ends_as(x, "failed", "crash_loop")
    assert served.history(x)[-1].crashes == 3
    served.open("go")
    assert served.result(innocent) > 1
    assert served.history(innocent)[-1].crashes == 0
    _others_go_on(served)


def test_bad_json_of_every_kind_on_the_command_line(tmp_path: Path) -> None:
    """Refused in one line, before any database is asked."""
    with Trial(tmp_path) as trial:
        environment = {**os.environ, "ROTA_URL": trial.url}
        for kind, text in BAD_TEXTS.items():
            stdin = text.decode(errors="surrogateescape")
            code, out, err = forks.run(COMMAND, trial.folder, environment, stdin, PATIENCE_S)
            assert code == 2, (kind, out, err)
            assert err.startswith("rota: "), (kind, err)
            assert err.count("\n") == 1, (kind, err)
        assert trial.executions() == []
        trial.check()
