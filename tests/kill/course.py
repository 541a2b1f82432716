"""The course of a run, whatever kills its processes: begin, wait for signs of life, rest, drain, read the logs."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.kill import effects, evidence
from tests.kill.crew import Crew
from tests.kill.enqueuer import ENOUGH
from tests.kill.fleet import START_S
from tests.kill.processes import POLL_S, wait_until

REST_S = 90.0
DRAIN_S = 60.0
TELL_S = 60.0
"""How often a run says how far it is."""
FORBIDDEN = ("Traceback", "database is locked", "out of reach")


class Course:
    """What goes wrong on the way is gathered, not raised."""

    def __init__(
        self,
        folder: Path,
        crew: Crew,
        tend: Callable[[], None],
        *,
        stall_s: float,
        rest_s: float = REST_S,
        forbidden: Sequence[str] = FORBIDDEN,
    ) -> None:
        """`tend` looks after the crew; after `stall_s` without an effect the run stops waiting for one."""
        self._folder = folder
        self._crew = crew
        self._tend = tend
        self._stall_s = stall_s
        self._rest_s = rest_s
        self._forbidden = forbidden
        self._begun_at = self._told_at = time.monotonic()
        self.problems: list[str] = []

    def begin(self) -> None:
        def has_begun() -> bool:
            self._tend()
            return self._progress() > 0 or bool(self._crew.problems)

        wait_until(has_begun, START_S, "the first effect")
        if self._crew.problems:
            raise RuntimeError(f"the fleet does not start: {self._crew.problems}, {self.logged()}")

    def wait(self, until: float) -> None:
        """Waits for the next blow, and for signs of life: killing a fleet that has not come back tests nothing."""
        before, since = self._progress(), time.monotonic()
        while time.monotonic() < until or (self._progress() == before and time.monotonic() - since < self._stall_s):
            self._tend()
            self._tell()
            time.sleep(POLL_S)  # sleep: between two checks of other processes

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._told_at >= TELL_S:
            self._told_at = now
            kills, problems = self._crew.kills.total(), len(self.problems + self._crew.problems)
            print(f"{(now - self._begun_at) / 60:.0f} min: {kills} kills, {problems} problems", file=sys.stderr)

    def rest(self, url: str, workers: int) -> None:
        self._crew.rest()
        (self._folder / ENOUGH).touch()
        for enqueuer in self._crew.enqueuers:
            with contextlib.suppress(Exception):
                enqueuer.wait(self._rest_s)
            if enqueuer.code() != 0:
                self.problems.append(f"{enqueuer.name} ended with exit code {enqueuer.code()}")
        try:
            wait_until(lambda: evidence.is_quiet(url, workers), self._rest_s, "every execution to end")
        except TimeoutError as error:
            self.problems.append(str(error))

    def drain(self) -> None:
        for supervisor in self._crew.supervisors:
            supervisor.process.signal(signal.SIGTERM)
        for supervisor in self._crew.supervisors:
            with contextlib.suppress(Exception):
                supervisor.wait(DRAIN_S)
            if supervisor.code() != 0:
                self.problems.append(f"{supervisor.name} was drained and ended with {supervisor.code()}")

    def logged(self) -> list[str]:
        """Being killed is no reason to complain: what the survivors wrote must not contain a surprise."""
        return [
            f"{log.name}: {line.strip()[:300]}"
            for log in sorted(self._folder.glob("*.log"))
            for line in log.read_text(errors="replace").splitlines()
            if any(word in line for word in self._forbidden)
        ]

    def _progress(self) -> int:
        return (self._folder / effects.FILE).stat().st_size
