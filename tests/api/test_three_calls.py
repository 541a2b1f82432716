"""The three fixed calls, with plain curl, on a fresh database, against `rota dev` as a user starts it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.waiting import eventually

REPOSITORY = Path(__file__).parents[2]
_ADDRESS = re.compile(r"the HTTP API answers at (\S+?),")


class Dev:
    """`rota dev` in a folder."""

    def __init__(self, folder: Path, database: str, *flags: str) -> None:
        environment = {**os.environ, "ROTA_URL": database, "PYTHONPATH": str(REPOSITORY)}
        command = [sys.executable, "-m", "rota", "dev", "--port", "0", *flags]
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    @property
    def log(self) -> str:
        return "".join(self.lines)

    @property
    def url(self) -> str:
        eventually(lambda: _ADDRESS.search(self.log) or self.process.poll() is not None, what="an address")
        found = _ADDRESS.search(self.log)
        assert found is not None, self.log
        return found[1]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(60)
        self._reader.join()
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


@contextmanager
def running(folder: Path, database: str, *flags: str) -> Iterator[Dev]:
    dev = Dev(folder, database, *flags)
    try:
        yield dev
    finally:
        dev.close()


def curl(method: str, url: str, body: object = None) -> tuple[int, Any]:
    data = [] if body is None else ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    command = ["curl", "-sS", "--retry", "20", "--retry-connrefused", "--retry-delay", "1", "-w", "\n%{http_code}"]
    done = subprocess.run([*command, "-X", method, *data, url], capture_output=True, text=True, timeout=60, check=True)
    text, _, status = done.stdout.rpartition("\n")
    return int(status), json.loads(text)


REPORT = {
    "name": "daily-report",
    "schedule": "0 0 * * *",
    "command": "python generate_report.py",
    "dependencies": ["job1", "job2"],
    "retries": 3,
    "timeout": 3600,
}


def test_case_1_the_three_calls(url: str, tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "examples" / "generate_report.py", tmp_path)
    with running(tmp_path, url) as dev:
        jobs = f"{dev.url}/jobs"
        status, refused = curl("POST", jobs, REPORT)
        assert (status, refused["code"], refused["errors"][0]["pointer"]) == (422, "unknown_job", "/dependencies/0")
        assert "job1" in refused["detail"]
        for name in ("job1", "job2"):
            assert curl("POST", jobs, {"name": name, "command": ["true"]})[0] == 201
        status, job = curl("POST", jobs, REPORT)
        assert (status, job["status"]) == (201, "scheduled")
        status, execution = curl("POST", f"{jobs}/{job['jobId']}/trigger")
        assert (status, execution["status"]) == (201, "queued")
        last = eventually(lambda: _ended(jobs, job["jobId"]), what="an end of the report") or {}
        assert (last["executionId"], last["status"]) == (execution["executionId"], "success"), dev.log
        assert dev.stop() == 0
    assert "stopped" in dev.log


def _ended(jobs: str, id: str) -> dict[str, Any] | None:
    found: dict[str, Any] = curl("GET", f"{jobs}/{id}")[1]["lastExecution"]
    return found if found["completedAt"] else None
