"""Two threads that decode the same kind of data for the first time, at the same moment.

msgspec would end the process with a segmentation fault (see `rota/domain/decoding.py`), so each test is a process of
its own. The first thread is paused wherever msgspec runs Python code while it learns a type, until the second thread
has decoded as well or waits for the first.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rota import App
from tests.support.databases import fresh_database
from tests.support.postgres import missing

TWO_THREADS = """
import enum, sys, threading

def pause(frame, event, argument):
    # Only after it has collected the annotations of the first type does msgspec have something unfinished.
    code = frame.f_code
    is_enum = code.co_filename == enum.__file__ and code.co_name == "__getattr__"
    learned.extend([code.co_name] if code.co_name == "get_class_annotations" else [])
    if second.ident is None and learned and (is_enum or len(learned) > 1):
        second.start()
        second.join(0.3)

def traced():
    sys.settrace(pause)
    decode()

def run():
    first = threading.Thread(target=traced)
    first.start()
    first.join()
    if second.ident is None:
        second.start()
    second.join()
    assert len(decoded) == 2, decoded

decoded, learned = [], []
second = threading.Thread(target=lambda: decode())
"""

SCHEDULES = """
from rota.domain import schedule
from rota.domain.trigger import Every
texts = [schedule.encode(schedule.Spec(job=job, trigger=Every(1), overlap=schedule.Overlap.ALLOW)) for job in "ab"]
decode = lambda: decoded.append(schedule.decode(texts.pop()))
run()
"""

EXECUTIONS = """
from rota.store import reader
from rota.store.opening import open_store
store = open_store(sys.argv[1])
decode = lambda: decoded.append(store.read(reader.execution, "default", sys.argv[2]))
run()
store.close()
"""


def test_two_threads_may_decode_schedules_at_once() -> None:
    assert_survives(SCHEDULES)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_two_threads_may_read_rows_at_once(kind: str, path: Path) -> None:
    if kind == "postgresql" and (reason := missing()):
        pytest.skip(reason)
    url = fresh_database() if kind == "postgresql" else f"sqlite:///{path}"
    app = App("shop", url=url)
    app.job(name="send")(lambda: None)
    id = app.jobs["send"].enqueue().id
    app.close()
    assert_survives(EXECUTIONS, url, id)


def assert_survives(program: str, *arguments: str) -> None:
    command = [sys.executable, "-X", "faulthandler", "-c", TWO_THREADS + program, *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert answer.returncode == 0, answer.stderr
