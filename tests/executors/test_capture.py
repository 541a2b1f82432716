"""What a job prints goes to its log, whatever became of the worker's own output."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TextIO

import pytest

from rota.domain.note import State
from rota.executors import capture
from rota.executors.context import Context
from tests.executors.test_command import claim_of


class Kept:
    """Takes down lines."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def line(self, id: str, fence: int, stream: str, text: str) -> None:
        self.texts.append(text)

    def lines(self, id: str, fence: int, stream: str, texts: list[str]) -> None:
        self.texts += texts

    def state(self, state: State) -> None: ...


@pytest.fixture
def kept() -> Iterator[Kept]:
    """What the attempt that the test stands for has said."""
    context, kept = Context(claim_of({}), None), Kept()
    context.notes = kept
    token = capture.current.set(context)
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
def test_a_job_does_not_fail_because_nobody_takes_what_its_worker_writes(
    lost: Callable[[], TextIO], kept: Kept
) -> None:
    stream = lost()
    tee = capture._Tee(stream, "stdout")
    for number in range(1000):
        print("line", number, file=tee, flush=True)
    assert kept.texts == [f"line {number}" for number in range(1000)]
    capture.current.set(None)
    with pytest.raises((OSError, ValueError)):
        print("not a job", file=tee, flush=True)
    _let_go(stream)


def _let_go(stream: TextIO) -> None:
    """To close it would fail for what it could not write: that may go."""
    if not stream.closed:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)
        stream.close()
