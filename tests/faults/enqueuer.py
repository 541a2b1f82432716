"""Callers that enqueue one ticket after the other and record the answers, as threads or as a process."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from rota import App
from rota.domain.errors import CommitUnknown, RotaError
from rota.sdk.job import Job
from tests.faults import jobs
from tests.faults.journal import Answer, Journal


class Callers:
    """Threads that share one app, and so one store."""

    def __init__(
        self, app: App, path: Path, threads: int, *, body_s: float = 0.0, pause_s: float = 0.03, keyed: bool = False
    ) -> None:
        self._job: Job[..., str, object] = app.jobs["work"]
        self._journal = Journal(path)
        self._name = path.stem
        self._body_s, self._pause_s, self._keyed = body_s, pause_s, keyed
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(threads)]
        self.errors: list[BaseException] = []
        """What they raised beside what Rota raises on purpose; there should be none."""
        self.refusals: list[str] = []
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends them, each after the call that it is in."""
        self._enough.set()
        for thread in self._threads:
            thread.join(90)
            assert not thread.is_alive(), "an enqueue hangs"
        self._journal.close()
        assert not self.errors, self.errors

    def _run(self, number: int) -> None:
        try:
            count = 0
            while not self._enough.is_set():
                self._one(f"{self._name}-{number}-{count}")
                count += 1
                self._enough.wait(self._pause_s)
        except BaseException as error:
            self.errors.append(error)

    def _one(self, ticket: str) -> None:
        job = self._job.options(key=ticket) if self._keyed else self._job
        self._journal.add(ticket, Answer.ASKED)
        try:
            handle = job.enqueue(ticket, self._body_s)
        except CommitUnknown:
            self._journal.add(ticket, Answer.UNKNOWN)
        except RotaError as error:
            self._journal.add(ticket, Answer.REFUSED)
            self.refusals.append(str(error))
        else:
            self._journal.add(ticket, Answer.ACCEPTED, handle.id)


def main() -> None:
    """`python -m tests.faults.enqueuer JOURNAL THREADS`: until its input ends."""
    callers = Callers(jobs.app, Path(sys.argv[1]), int(sys.argv[2]))
    sys.stdin.read()
    callers.stop()


if __name__ == "__main__":
    main()
