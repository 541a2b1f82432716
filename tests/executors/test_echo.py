"""Output of isolated jobs and commands on the worker's own standard error."""

from __future__ import annotations

import io
import threading

from rota.executors.echo import Echo
from tests.support.waiting import PATIENCE_S


class Stuck(io.StringIO):
    """A stream whose reader is stuck until `free` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.free = threading.Event(), threading.Event()

    def write(self, text: str) -> int:
        self.reached.set()
        assert self.free.wait(PATIENCE_S)
        return super().write(text)


def test_lines_have_the_job_and_the_id_before_them() -> None:
    stream = io.StringIO()
    echo = Echo(stream)
    echo.start()
    echo.show("pay", "0197", ["one", "two"])
    echo.close()
    assert stream.getvalue() == "pay 0197: one\npay 0197: two\n"


def test_a_stuck_reader_loses_lines_and_blocks_no_job() -> None:
    stream = Stuck()
    echo = Echo(stream, most_waiting=100)
    echo.start()
    echo.show("pay", "0197", ["first"])
    assert stream.reached.wait(PATIENCE_S)
    for _ in range(1000):
        echo.show("pay", "0197", ["x" * 70])
    stream.free.set()
    echo.close()
    first, kept, said = stream.getvalue().splitlines()
    assert (first, kept) == ("pay 0197: first", "pay 0197: " + "x" * 70)
    assert said == "(999 lines of jobs were left out here: `rota logs` has them)"
