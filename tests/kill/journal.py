"""The calls of an enqueuer and the answers that it got: the clients' history, one line at a time."""

from __future__ import annotations

import os
import time
from enum import StrEnum
from pathlib import Path

import msgspec


class Word(StrEnum):
    """What an entry is about."""

    ENQUEUE = "enqueue"
    TOO_MUCH = "too much"
    """About to ask for what must be refused."""
    REFUSED = "refused"
    CANCEL = "cancel"
    """About to ask for it."""
    CANCELLED = "cancel accepted"


class Entry(msgspec.Struct, frozen=True):
    """A ticket names one enqueue forever. `id` is what Rota answered; None means that the call is about to be made."""

    ticket: str
    keyed: bool
    id: str | None = None
    word: Word = Word.ENQUEUE
    at: int = 0
    """When it was written, in microseconds since 1970 UTC."""


class Journal:
    """Appended to by one enqueuer at a time; a line is one write, so a killed writer leaves whole lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def add(self, entries: list[Entry]) -> None:
        at = time.time_ns() // 1000
        lines = [msgspec.json.encode(msgspec.structs.replace(entry, at=at)) + b"\n" for entry in entries]
        os.write(self._fd, b"".join(lines))


def read(path: Path) -> list[Entry]:
    return [msgspec.json.decode(line, type=Entry) for line in path.read_bytes().splitlines()] if path.exists() else []


def unanswered(entries: list[Entry]) -> list[Entry]:
    """The tries that never got an answer, in order."""
    answered = {entry.ticket for entry in entries if entry.id is not None or entry.word is Word.REFUSED}
    tries = {entry.ticket: entry for entry in entries if entry.id is None}
    return [entry for ticket, entry in tries.items() if ticket not in answered]
