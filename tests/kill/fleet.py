"""The processes of one run: receiver, enqueuers, and supervisors with their children, started as a user would."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from tests.kill.effects import ADDRESS, FILE
from tests.kill.processes import MARK, Process, children_of, described, marked, parent_of, spawners_of, wait_until

REPOSITORY = Path(__file__).resolve().parents[2]
ROOM = "tests.kill"
"""The package with the app, the enqueuer and the receiver of the kill test."""
START_S = 30.0
DEATH_S = 15.0


class Program:
    """One program that this run started, its log, and a pinned handle on its process."""

    def __init__(self, name: str, arguments: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(environment),
                cwd=folder,
                start_new_session=True,
            )
        self.process = Process(self._popen.pid)
        self.started_at = time.monotonic()
        self.is_stopped = False

    @property
    def pid(self) -> int:
        return self.process.pid

    def code(self) -> int | None:
        """The exit code, once it has ended."""
        return self._popen.poll()

    def children(self) -> list[Process]:
        """The worker processes below a supervisor, each checked to be its child after it was pinned."""
        return self._pinned(children_of(self.pid))

    def spawners(self) -> list[Process]:
        """The spawners, which would kill the children of a stopped supervisor before these are continued."""
        return self._pinned(spawners_of(self.pid))

    def _pinned(self, pids: list[int]) -> list[Process]:
        found = []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                child = Process(pid)
                if parent_of(pid) == self.pid:
                    found.append(child)
                else:
                    child.close()
        return found

    def wait(self, timeout_s: float) -> int:
        return self._popen.wait(timeout_s)

    def close(self) -> None:
        """Ends it if need be, and everything that it started ends with it."""
        if self._popen.poll() is None:
            self.process.signal(signal.SIGKILL)
            self._popen.wait(DEATH_S)
        self.process.close()


class Fleet:
    """Starts programs in one folder on one database, a file in it if no other is named, and leaves none behind."""

    def __init__(
        self,
        folder: Path,
        url: str = "",
        *,
        room: str = ROOM,
        processes: int = 1,
        concurrency: int = 4,
        **settings: float,
    ) -> None:
        self._room = room
        self.folder = folder
        self.url = url or f"sqlite:///{folder}/rota.db"
        self.mark = uuid.uuid4().hex
        self.programs: list[Program] = []
        self._processes, self._concurrency = processes, concurrency
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ROTA_")},
            **{f"ROTA_{name.upper()}": str(value) for name, value in settings.items()},
            "ROTA_URL": self.url,
            "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{REPOSITORY / 'src'}",
            MARK: self.mark,
            "ROTA_DUMPABLE": "1",  # Or only root could read the mark, and list the descriptors of a worker.
            ADDRESS: f"rota-kill-{self.mark}",
        }

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        for program in self.programs:
            program.close()
        try:
            wait_until(lambda: not marked(self.mark), DEATH_S, "the processes of this run to be gone")
        except TimeoutError as error:
            raise TimeoutError("\n".join([str(error), *map(described, marked(self.mark))])) from None
        finally:
            self._end_the_rest()

    def receiver(self) -> Program:
        """Started first: an effect must find it."""
        program = self.start("receiver", [f"{self._room}.receiver", str(self.folder), self.environment[ADDRESS]])
        wait_until((self.folder / FILE).exists, START_S, "the receiver")
        return program

    def supervisor(self, name: str) -> Program:
        options = ["--processes", str(self._processes), "--concurrency", str(self._concurrency)]
        return self.start(name, ["rota", "worker", f"{self._room}.jobs:app", *options])

    def enqueuer(self, name: str) -> Program:
        return self.start(name, [f"{self._room}.enqueuer", name, str(self.folder)])

    def start(self, name: str, arguments: list[str]) -> Program:
        program = Program(name, arguments, self.folder, self.environment)
        self.programs.append(program)
        return program

    def _end_the_rest(self) -> None:
        """A run that found orphans has failed, but leaves none to the machine."""
        for pid in marked(self.mark):
            with contextlib.suppress(ProcessLookupError):
                orphan = Process(pid)
                # Looked at again now that it is pinned: the number may have changed hands.
                if pid in marked(self.mark):
                    orphan.signal(signal.SIGKILL)
                orphan.close()
