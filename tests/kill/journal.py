"""What an enqueuer tried and what it was told: the clients' history, one line at a time."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec


class Entry(msgspec.Struct, frozen=True):
    """A ticket names one enqueue for ever. `id` is what Rota answered; None means that the call is about to be made."""

    ticket: str
    keyed: bool
    id: str | None = None


class Journal:
    """Appended to by one enqueuer at a time; a line is one write, so a killed writer leaves whole lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def add(self, entries: list[Entry]) -> None:
        os.write(self._fd, b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries))


def read(path: Path) -> list[Entry]:
    return [msgspec.json.decode(line, type=Entry) for line in path.read_bytes().splitlines()] if path.exists() else []


def unanswered(entries: list[Entry]) -> list[Entry]:
    """The tries that never got an answer, in order."""
    answered = {entry.ticket for entry in entries if entry.id is not None}
    tries = {entry.ticket: entry for entry in entries if entry.id is None}
    return [entry for ticket, entry in tries.items() if ticket not in answered]
