"""Output of a job is stored in its log, even if the worker's own output is closed or full."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

import pytest

from rota.domain.note import State
from rota.executors import capture
from rota.executors.attempt_state import AttemptState
from tests.executors.test_command import claim_of


class Kept:
    """Records lines."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def line(self, id: str, fence: int, stream: str, text: str) -> None:
        self.texts.append(text)

    def lines(self, id: str, fence: int, stream: str, texts: list[str]) -> None:
        self.texts += texts

    def state(self, state: State) -> None: ...


@pytest.fixture
def kept() -> Iterator[Kept]:
    """The lines of the attempt that the test stands for."""
    state, kept = AttemptState(claim_of({}), None), Kept()
    state.notes = kept
    token = capture.current.set(state)
    yield kept
    capture.current.reset(token)


def unread() -> TextIO:
    """A pipe whose reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    return os.fdopen(writing, "w", buffering=1)


def full() -> TextIO:
    """A file on a disk that is full."""
    return open("/dev/full", "w", buffering=1)  # noqa: PTH123


def closed() -> TextIO:
    stream = unread()
    stream.close()
    return stream


@pytest.mark.parametrize("lost", [unread, full, closed])
def test_a_job_does_not_fail_if_the_output_of_its_worker_has_no_reader(lost: Callable[[], TextIO], kept: Kept) -> None:
    stream = lost()
    tee = capture._Tee(stream, "stdout")
    for number in range(1000):
        print("line", number, file=tee, flush=True)
    assert kept.texts == [f"line {number}" for number in range(1000)]
    capture.current.set(None)
    with pytest.raises((OSError, ValueError)):
        print("not a job", file=tee, flush=True)
    _let_go(stream)


def test_lines_are_assembled_from_several_writes(kept: Kept, tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as out:
        tee = capture._Tee(out, "stdout")
        print("a", 1, "b", file=tee)
        print(file=tee)
        print("one\ntwo\n\nthree", end="", file=tee)
        print(" and more", end="\nrest", file=tee)
        print("", end="", file=tee)
        assert tee.write("of it\r\n") == 7
        long = "x" * capture.MOST_PENDING
        print(long, end="", file=tee)
        assert kept.texts == ["a 1 b", "", "one", "two", "", "three and more", "restof it\r"]
        print("y", end="", file=tee)
        assert kept.texts.pop() == f"{long}y"
        print(f"{long}z", end="", file=tee)
        assert kept.texts.pop() == f"{long}z"
        print("no end", end="", file=tee)
        state = capture.current.get()
        assert state is not None
        tee.finish(state)
        tee.finish(state)
        assert kept.texts[7:] == ["no end"]
    parts = ("a 1 b\n\none\ntwo\n\nthree and more\nrestof it\r\n", long, "y", long, "z", "no end")
    assert (tmp_path / "out").read_bytes() == "".join(parts).encode()


def test_log_records_are_stored_line_by_line(kept: Kept) -> None:
    logger = logging.Logger("shop")
    logger.addHandler(capture._Handler())
    logger.warning("low on %s", "paper")
    logger.error("two\nlines")
    logger.warning("%d", "no number")
    try:
        raise ValueError("boom")
    except ValueError:
        logger.exception("oh")
    assert kept.texts[:3] == ["WARNING shop: low on paper", "ERROR shop: two", "lines"]
    assert (kept.texts[3], kept.texts[-1]) == ("ERROR shop: oh", "ValueError: boom")
    kept.texts.clear()
    capture.current.set(None)
    logger.warning("nobody's")
    assert kept.texts == []


def _let_go(stream: TextIO) -> None:
    """To close it would fail for what it could not write: that may go."""
    if not stream.closed:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
        stream.close()


def test_a_captured_stream_is_a_file_object_that_a_job_cannot_close(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w+") as out:
        tee = capture._Tee(out, "stdout")
        with tee as stream:
            stream.write("first\n")
        tee.close()
        tee.write("second\n")
        assert isinstance(tee, io.TextIOBase)
        assert (out.closed, tee.fileno(), tee.encoding) == (False, out.fileno(), out.encoding)
        out.seek(0)
        assert out.read() == "first\nsecond\n"
