"""A process that enqueues as fast as the queue's depth allows, and keeps a journal of what was accepted.

It may be killed at any point. Its successor reads the journal and asks again for the one ticket with a key that got no
answer: the key must give back the execution of the first call, if there was one. A ticket without a key is never asked
for twice.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from rota import Job, QueueFull
from tests.kill import jobs
from tests.kill.journal import Entry, Journal, read, unanswered

ENOUGH = "enough"
SHORTEST_S, LONGEST_S = 0.02, 0.15
BULK = 5
T = TypeVar("T")
CHOICES: list[tuple[Job[..., int, Any], int]] = [
    (jobs.quick, 40),
    (jobs.threaded, 25),
    (jobs.flaky, 8),
    (jobs.flaky_threaded, 8),
    (jobs.slow, 2),
    (jobs.doomed, 3),
]


class Enqueuer:
    """`number` counts tickets on from the journal of its predecessors."""

    def __init__(self, name: str, folder: Path, chance: random.Random) -> None:
        self._name = name
        self._chance = chance
        self._enough = folder / ENOUGH
        self._journal = Journal(journal_path(folder, name))
        before = read(self._journal.path)
        self._number = len({entry.ticket for entry in before})
        self._open = [entry for entry in unanswered(before) if entry.keyed]

    def run(self) -> None:
        for entry in self._open:
            self._one(entry, again=True)
        while not self._enough.exists():
            if self._chance.random() < 0.05:
                self._many([self._ticket(keyed=False) for _ in range(BULK)])
            else:
                self._one(self._ticket(keyed=self._chance.random() < 0.5))

    def _one(self, entry: Entry, *, again: bool = False) -> None:
        # A key must come back with the same arguments, so they follow from the ticket.
        of_ticket = random.Random(entry.ticket)
        job = of_ticket.choices([job for job, _ in CHOICES], [weight for _, weight in CHOICES])[0]
        delayed = of_ticket.random() < 0.1
        chosen = job.options(key=entry.ticket if entry.keyed else None, delay=0.2 if delayed else None)
        body_s = of_ticket.uniform(SHORTEST_S, LONGEST_S)
        if not again:
            self._journal.add([entry])
        handle = self._patiently(lambda: chosen.enqueue(entry.ticket, body_s))
        self._journal.add([Entry(entry.ticket, entry.keyed, handle.id)])

    def _many(self, entries: list[Entry]) -> None:
        calls = [(entry.ticket, SHORTEST_S) for entry in entries]
        self._journal.add(entries)
        handles = self._patiently(lambda: jobs.quick.enqueue_many(calls))
        self._journal.add(
            [Entry(entry.ticket, entry.keyed, handle.id) for entry, handle in zip(entries, handles, strict=True)]
        )

    def _patiently(self, call: Callable[[], T]) -> T:
        while True:
            try:
                return call()
            except QueueFull:
                time.sleep(self._chance.uniform(0.02, 0.1))  # sleep: what the refusal asks for, only shorter

    def _ticket(self, *, keyed: bool) -> Entry:
        self._number += 1
        return Entry(f"{self._name}-{self._number}", keyed)


def journal_path(folder: Path, name: str) -> Path:
    return folder / f"journal-{name}.jsonl"


if __name__ == "__main__":
    Enqueuer(sys.argv[1], Path(sys.argv[2]), random.Random()).run()
