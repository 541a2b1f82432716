"""The requests of the enqueuers and the answers that they got: the record that does not depend on the database."""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Answer(StrEnum):
    """How a call ended, as its caller saw it."""

    ASKED = "asked"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Journal:
    """Lines of (ticket, answer, id), each written with one call, so that those of several writers do not mix."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def add(self, ticket: str, answer: Answer, id: str = "-") -> None:
        os.write(self._fd, f"{ticket} {answer} {id}\n".encode())

    def close(self) -> None:
        os.close(self._fd)


class Told(NamedTuple):
    """The answers that all callers got, by ticket."""

    accepted: dict[str, str]
    """The ids that stand for what was accepted."""
    refused: set[str]
    unknown: set[str]
    """Tickets whose callers got `CommitUnknown`, or were killed before they got an answer."""
    doubled: set[str]


def read(paths: Iterable[Path]) -> Told:
    lines = [line.split() for path in paths for line in path.read_text().splitlines()]
    accepted: dict[str, str] = {}
    doubled: set[str] = set()
    for ticket, answer, id in lines:
        if answer == Answer.ACCEPTED:
            doubled |= {ticket} & accepted.keys()
            accepted[ticket] = id
    asked, refused = (
        {ticket for ticket, answer, _ in lines if answer == kind} for kind in (Answer.ASKED, Answer.REFUSED)
    )
    return Told(accepted, refused, asked - accepted.keys() - refused, doubled)
