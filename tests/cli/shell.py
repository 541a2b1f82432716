"""What the tests of the command line share: running it, and putting things into its database."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

from rota.clock import SystemClock
from rota.domain.job import Definition
from rota.domain.outcome import Error, Failed, Outcome
from rota.domain.served import Served
from rota.ids import IdSource
from rota.ops import claim, define, deploy, enqueue, finish, fleet, submission
from rota.store import definition_reader
from rota.store.sqlite.store import SqliteStore
from tests.support import forks
from tests.support.databases import fresh_file
from tests.support.newcomers import newcomer
from tests.support.world import NO_RETRY, set_rules

SHOP = '''
from __future__ import annotations
import threading
from rota import App

app = App("shop")

@app.job(queue="mail")
def send(to: str, *, subject: str = "hi", copies: int = 1) -> str:
    """Sends a mail."""
    return f"{copies} x {subject} to {to}"

@app.job(retry=None)
def fail(text: str = "boom") -> None:
    raise ValueError(text)

@app.job
def hang() -> None:
    threading.Event().wait()
'''
QUICK = {"ROTA_POLL_S": "0.1", "ROTA_GRACE_S": "0.2"}
HANG_S = 60
_OF_OTHERS = re.compile(r"^.* had left behind\n", re.MULTILINE)
"""A worker ends what killed workers have left on the machine, those of other tests too, and says so."""
ABOUT = {"type": "str", "required": True}
SEND = Definition(name="send", queue="mail", parameters={"to": ABOUT, "subject": {"type": "str", "required": False}})


class Answer(NamedTuple):
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> Any:
        return json.loads(self.out)


class Program(subprocess.Popen[str]):
    """A command that runs. Unlike that of its base class, `communicate` also returns the lines that an earlier
    `readline` has read ahead."""

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: A002
        assert input is None
        with ThreadPoolExecutor() as threads:
            texts = [threads.submit(_read_all, pipe) for pipe in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            out, err = (text.result() for text in texts)
            return out, err


def _read_all(pipe: IO[str] | None) -> str:
    if pipe is None or pipe.closed:
        return ""
    with pipe:
        return pipe.read()


class Shell:
    """Runs `rota` in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROTA_")}
        self.env = {**kept, **QUICK, "NO_COLOR": "1"}

    def __call__(self, *words: str, stdin: str = "", env: dict[str, str] | None = None) -> Answer:
        code, out, err = forks.run(words, self.folder, self.env | (env or {}), stdin, HANG_S)
        assert "Traceback" not in err, err
        return Answer(code, out, _OF_OTHERS.sub("", err))

    def ok(self, *words: str, stdin: str = "") -> Answer:
        """Runs a command that must succeed."""
        answer = self(*words, stdin=stdin)
        assert answer.code == 0, answer
        return answer

    def refused(self, *words: str, code: int = 2, env: dict[str, str] | None = None) -> str:
        """Runs a command that must fail with exactly one line, and returns that line."""
        answer = self(*words, env=env)
        assert answer.code == code, answer
        assert answer.out == ""
        assert answer.err.startswith("rota: "), answer.err
        assert answer.err.count("\n") == 1, answer.err
        return answer.err.removeprefix("rota: ").strip()

    def start(self, *words: str) -> Program:
        command = [sys.executable, "-m", "rota", *words]
        pipe = subprocess.PIPE
        return Program(command, cwd=self.folder, env=self.env, stdout=pipe, stderr=pipe, text=True)

    def screen(
        self,
        *words: str,
        columns: int = 80,
        typed: bytes = b"",
        seen: tuple[bytes, Callable[[], None]] | None = None,
    ) -> tuple[int, str]:
        """Runs a command on a terminal, types an answer, and returns the code and what was shown.

        `seen` is a text and what to do when it is shown.
        """
        ours, theirs = pty.openpty()
        env = self.env | {"TERM": "xterm", "COLUMNS": str(columns)}
        command = [sys.executable, "-m", "rota", *words]
        process = subprocess.Popen(command, cwd=self.folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        os.write(ours, typed)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
                if seen is not None and seen[0] in shown:
                    act, seen = seen[1], None
                    act()
        except OSError:
            pass  # The other end is closed: the command has ended.
        os.close(ours)
        return process.wait(HANG_S), shown.decode().replace("\r\n", "\n")

    @contextmanager
    def workers(self) -> Iterator[Callable[..., None]]:
        started: list[subprocess.Popen[bytes]] = []

        def start(*words: str, app: str = "shop:app") -> None:
            command = [sys.executable, "-m", "rota", "worker", app, *words]
            with (self.folder / "worker.log").open("ab") as log:
                started.append(subprocess.Popen(command, cwd=self.folder, env=self.env, stdout=log, stderr=log))

        try:
            yield start
        finally:
            for process in started:
                process.send_signal(signal.SIGTERM)
            codes = [process.wait(HANG_S) for process in started]
            assert codes == [0] * len(codes), (self.folder / "worker.log").read_text()


class Seed:
    """Writes to the database of a shell as programs and workers would, without their processes."""

    def __init__(self, shell: Shell) -> None:
        self.path = shell.folder / "rota.db"
        self.clock = SystemClock()
        self.ids = IdSource(self.clock)
        self.store = SqliteStore(fresh_file(shell.folder), self.clock)
        self.define("shop", SEND, Definition(name="fail"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def define(self, app: str, *definitions: Definition) -> None:
        self.store.transact(define.register, "default", app, definitions, ())

    def deploy(self, app: str, *definitions: Definition) -> None:
        """As if a worker of the app had joined with these jobs."""
        number = self.store.transact(deploy.declare, "default", app, definitions, [], {})
        self.store.transact(deploy._apply, "default", app, number, "test")

    def enqueue(self, job: str = "send", count: int = 1, arguments: str = '{"to":"a"}', **options: Any) -> list[str]:
        values = {"namespace": "default", "app": "shop", "job": job, "queue": "mail", "actor": "test", **options}
        items = [submission.Item(id, arguments) for id in self.ids.many(count)]
        accepted = self.store.transact(enqueue.enqueue, submission.Header(**values), items)
        return [one.id for one in accepted]

    def join(self, *, version: str = "0.1.0", lease_s: float = 600.0, queues: list[str] | None = None) -> int:
        """A worker that exists only as a row."""
        joining = newcomer("shop", name="host:1", version=version, queues=queues, jobs=self._jobs(), concurrency=4)
        return self.store.transact(fleet.join, joining, lease_s)

    def claim(self, worker: int, slots: int = 1000) -> list[tuple[str, int]]:
        claimed = self.store.transact(claim.claim, worker, Served.one("default", "shop", None, self._jobs()), slots)
        return [(one.id, one.fence) for one in claimed.claims]

    def _jobs(self) -> list[str]:
        return [row.name for row in self.store.read(definition_reader.all_jobs, "default") if row.app == "shop"]

    def run(self, outcome: Outcome) -> None:
        """Ends all that is queued with this outcome, without retries."""
        worker = self.join()
        reports = [finish.Finished(id, fence, outcome) for id, fence in self.claim(worker)]
        for report in reports:
            self.store.transact(set_rules, report.id, NO_RETRY)
        self.store.transact(finish.finish, reports)
        self.store.transact(fleet.leave, worker)

    def fail(self, count: int = 1, message: str = "boom", job: str = "fail") -> list[str]:
        """That many dead letters."""
        ids = self.enqueue(job, count)
        self.run(Failed(Error("ValueError", message, f"Traceback:\n  line 1\nValueError: {message}")))
        return ids
