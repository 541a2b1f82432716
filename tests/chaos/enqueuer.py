"""A client of a chaos run: enqueues at a steady pace, cancels what is meant to be cancelled, and keeps a journal.

It may be killed at any point. Its successor reads the journal, asks again for what has a key and got no answer, and
cancels what was not cancelled yet. Now and then it asks for what must be refused.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from rota import App, ArgumentsError, Job, QueueFull, StoreError
from tests.chaos import jobs
from tests.chaos.designs import DESIGNS, WEIGHTS, Design
from tests.kill.enqueuer import ENOUGH, journal_path
from tests.kill.journal import Entry, Journal, Word, read, unanswered

PACE = "CHAOS_PACE_S"
"""How long an enqueuer waits between two calls, on average."""
SEED = "CHAOS_SEED"
EVEN = "CHAOS_EVEN"
"""The power to which the weights of the jobs are raised: 1 as they are, 0 for all alike."""
REFUSALS = 0.003
SHORTEST_S, LONGEST_S = 0.05, 1.0
COMMAND_S = 4.0
T = TypeVar("T")

ghosts = App("chaos")


@ghosts.job
def ghost(ticket: str, body_s: float) -> None:
    """No worker has this job."""


class Client:
    """`number` counts tickets on from the journal of its predecessors."""

    def __init__(self, name: str, folder: Path, chance: random.Random) -> None:
        self._name = name
        self._chance = chance
        self._pace_s = float(os.environ[PACE])
        self._enough = folder / ENOUGH
        self._journal = Journal(journal_path(folder, name))
        before = read(self._journal.path)
        self._number = len({entry.ticket for entry in before})
        self._open = [entry for entry in unanswered(before) if entry.keyed]
        done = {entry.id for entry in before if entry.word is Word.CANCELLED}
        self._to_cancel = [(0.0, entry) for entry in before if _is_to_cancel(entry) and entry.id not in done]

    def run(self) -> None:
        for entry in self._open:
            self._enqueue(entry, again=True)
        while not self._enough.exists():
            self._cancel(time.monotonic())
            if self._chance.random() < REFUSALS:
                self._ask_for_too_much()
            else:
                self._number += 1
                self._enqueue(Entry(f"{self._name}-{self._number}", keyed=self._chance.random() < 0.7))
            time.sleep(self._chance.uniform(0.5, 1.5) * self._pace_s)  # sleep: the pace of this client
        while self._to_cancel:
            self._cancel(float("inf"))

    def _enqueue(self, entry: Entry, *, again: bool = False) -> None:
        name, body_s = chosen(entry.ticket)
        job: Job[..., Any, Any] = (ghosts if name == ghost.name else jobs.app).jobs[name]
        options = job.options(key=entry.ticket if entry.keyed else None)
        if not again:
            self._journal.add([entry])
        # A call without a key must not be repeated: the first one may have been accepted.
        handle = self._patiently(lambda: options.enqueue(ticket=entry.ticket, body_s=body_s), may_repeat=entry.keyed)
        if handle is not None:
            answer = Entry(entry.ticket, entry.keyed, handle.id)
            self._journal.add([answer])
            if _is_to_cancel(answer):
                self._to_cancel.append((time.monotonic() + self._chance.uniform(0.3, 3.0), answer))

    def _cancel(self, until: float) -> None:
        due = [each for each in self._to_cancel if each[0] <= until]
        for each in due:
            entry = each[1]
            assert entry.id is not None, "only what was accepted is cancelled"
            self._journal.add([Entry(entry.ticket, entry.keyed, entry.id, Word.CANCEL)])
            if self._patiently(jobs.app.handle(entry.id).cancel, may_repeat=True) is not None:
                self._journal.add([Entry(entry.ticket, entry.keyed, entry.id, Word.CANCELLED)])
            self._to_cancel.remove(each)

    def _ask_for_too_much(self) -> None:
        """Arguments that no database keeps must be refused, and leave nothing behind."""
        self._number += 1
        ticket = f"{self._name}-{self._number}"
        self._journal.add([Entry(ticket, keyed=False, word=Word.TOO_MUCH)])
        bad = "a\x00b" if self._chance.random() < 0.5 else "x" * 20_000_000
        try:
            jobs.app.jobs["call"].enqueue(ticket=ticket, body=bad)
        except ArgumentsError:
            self._journal.add([Entry(ticket, keyed=False, word=Word.REFUSED)])

    def _patiently(self, call: Callable[[], T], *, may_repeat: bool) -> T | None:
        """The answer; None if there was none and the call must not be repeated."""
        while True:
            try:
                return call()
            except QueueFull:
                time.sleep(self._chance.uniform(0.05, 0.2))  # sleep: what the refusal asks for, only shorter
            except StoreError as error:
                print(f"{self._name}: {error!r}", flush=True)
                if not may_repeat:
                    return None


def chosen(ticket: str) -> tuple[str, float]:
    """The job and how long it takes: a key must come back with the same arguments, so they follow from the ticket."""
    chance = random.Random(f"{os.environ.get(SEED)} {ticket}")
    power = float(os.environ.get(EVEN, "1"))
    name = chance.choices(list(WEIGHTS), [weight**power for weight in WEIGHTS.values()])[0]
    if name in ("long_command", "overrun_command"):
        return name, jobs.LONG_S
    return name, round(chance.uniform(SHORTEST_S, LONGEST_S) * (COMMAND_S if name == "command" else 1), 3)


def _is_to_cancel(entry: Entry) -> bool:
    is_answer = entry.id is not None and entry.word is Word.ENQUEUE
    return is_answer and DESIGNS[chosen(entry.ticket)[0]] is Design.CANCELLED


if __name__ == "__main__":
    Client(sys.argv[1], Path(sys.argv[2]), random.Random()).run()
