"""Processes that exit in order run the atexit handlers of the user's code, and do not wait longer than for these."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.waiting import PATIENCE_S, eventually
from tests.support.workers import Site, is_alive

SLOW_HANDLER = """
import atexit, sys, threading
from rota.executors.process import exit_process
exit_process.HANDLERS_S = float(sys.argv[1])
atexit.register(threading.Event().wait)
atexit.register(print, "farewell", flush=True)
threading.Thread(target=threading.Event().wait).start()
exit_process.exit_in_order(7)
"""
FAILING_HANDLER = """
import atexit, sys
from rota.executors.process import exit_process
atexit.register(print, "farewell", flush=True)
atexit.register(sys.exit, 3)
atexit.register(int, "x")
exit_process.exit_in_order(7)
"""


def test_atexit_handlers_run_when_a_worker_is_stopped(file_site: Site) -> None:
    worker = file_site.worker()
    executions = [file_site.enqueue(name) for name in ("says_farewell", "alone_says_farewell")]
    wanted = [(x.id, 1, x.result(PATIENCE_S)) for x in executions]
    worker.signal(signal.SIGTERM)
    assert worker.wait() == 0
    assert sorted(file_site.journal("farewell")) == sorted(wanted)


def test_atexit_handlers_run_when_an_isolated_process_is_replaced(file_site: Site) -> None:
    file_site.worker(recycle_jobs=1)
    x = file_site.enqueue("alone_says_farewell")
    process = x.result(PATIENCE_S)
    eventually(lambda: file_site.journal("farewell") == [(x.id, 1, process)], what="the farewell")
    eventually(lambda: not is_alive(process), what="the end of the process")


@pytest.mark.parametrize("program", [SLOW_HANDLER, FAILING_HANDLER], ids=["slow", "failing"])
def test_a_bad_atexit_handler_blocks_neither_the_exit_nor_the_other_handlers(program: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", program, "0.3"], capture_output=True, timeout=PATIENCE_S, check=False, text=True
    )
    assert (ended.returncode, ended.stdout) == (7, "farewell\n")
