"""A real `rota server` as a process, for what only a real one shows: signals, sockets, restarts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import eventually

_LISTENING = re.compile(r"listening on (\S+)")


class ServerProcess:
    """`url` is its address; `log` is what it has written."""

    def __init__(self, folder: Path, database: str, *flags: str) -> None:
        command = [sys.executable, "-m", "rota", "server", "--port", "0", *flags]
        environment = {**os.environ, "ROTA_URL": database}
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def log(self) -> str:
        return "".join(self.lines)

    @property
    def url(self) -> str:
        eventually(lambda: _LISTENING.search(self.log) or self.process.poll() is not None)
        found = _LISTENING.search(self.log)
        assert found is not None, self.log
        return found[1]

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def replace(self) -> None:
        """Sends SIGHUP, and waits until new processes answer."""
        before = self.log.count("new processes answer")
        self.signal(signal.SIGHUP)
        eventually(lambda: self.log.count("new processes answer") > before)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.process.wait(30)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


@contextmanager
def server_process(folder: Path, database: str, *flags: str) -> Iterator[ServerProcess]:
    server = ServerProcess(folder, database, *flags)
    try:
        yield server
    finally:
        server.close()
