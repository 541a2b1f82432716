"""`rota server` as a process: addresses, tokens, replacement of its processes, its end."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx

from tests.api.process import server_process
from tests.support.databases import fresh_database
from tests.support.waiting import eventually

PATHS = ("/ready", "/health", "/api/v1/me", "/api/v1/jobs")


def test_case_44_no_request_fails_while_the_processes_are_replaced(tmp_path: Path) -> None:
    stop, failures, done, byes = threading.Event(), list[str](), [0, 0, 0, 0], list[str]()

    def call(number: int, url: str) -> None:
        with httpx.Client(base_url=url, timeout=30) as client:
            while not stop.is_set():
                try:
                    answer = client.get(PATHS[number])
                    if answer.status_code != 200:
                        failures.append(answer.text)
                except httpx.HTTPError as error:
                    failures.append(repr(error))
                done[number] += 1

    def wait(url: str, id: str) -> None:
        """An answer comes before its time only when the process stops."""
        with httpx.Client(base_url=url, timeout=30) as client:
            while not stop.is_set():
                answer = client.get(f"/api/v1/executions/{id}?wait=1s")
                if (answer.status_code, answer.json()["status"]) != (200, "scheduled"):
                    failures.append(answer.text)

    def listen(url: str) -> None:
        """A stream that ends says why, and the next one opens."""
        with httpx.Client(base_url=url, timeout=30) as client:
            while not stop.is_set():
                with client.stream("GET", "/api/v1/stream?topics=pulse") as stream:
                    lines = list(stream.iter_lines()) if stream.status_code == 200 else [f"{stream.status_code}"]
                byes.append(next((line for line in lines[::-1] if "reason" in line), "cut off"))

    with server_process(tmp_path, fresh_database(), "--processes", "2") as server:
        with httpx.Client(base_url=server.url, timeout=30) as client:
            client.post("/api/v1/jobs", json={"name": "one", "command": ["true"]}).raise_for_status()
            id = client.post("/api/v1/jobs/one/trigger", json={"delay": "1h"}).json()["executionId"]
        callers = [threading.Thread(target=call, args=(number, server.url)) for number in range(4)]
        callers.append(threading.Thread(target=wait, args=(server.url, id)))
        threading.Thread(target=listen, args=(server.url,), daemon=True).start()
        for caller in callers:
            caller.start()
        try:
            for _ in range(2):
                server.replace()
        finally:
            stop.set()
            for caller in callers:
                caller.join()
        assert failures == [], server.log
        assert min(done) > 10
        assert server.stop() == 0
        eventually(lambda: len(byes) >= 2, what="a stream that ended with each process")
        assert all('"draining"' in bye for bye in byes[:2]), byes


def test_every_request_has_a_line_in_the_log(tmp_path: Path) -> None:
    with server_process(tmp_path, f"sqlite:///{tmp_path}/rota.db") as server:
        with httpx.Client(base_url=server.url) as client:
            for number in range(100):
                client.get(f"/api/v1/me?number={number}", headers={"X-Request-Id": f"request-{number:03d}"})
        line = r"^\S+ \S+,\d{3} INFO rota\.access: GET /api/v1/me\?… 400 [\d.]+ms 127\.0\.0\.1 \S+ request-(\d{3})$"
        wanted = [f"{number:03d}" for number in range(100)]
        eventually(lambda: re.findall(line, server.log, re.MULTILINE) == wanted, what=f"a line each: {server.log}")


def test_a_killed_process_is_replaced(tmp_path: Path) -> None:
    with (
        server_process(tmp_path, f"sqlite:///{tmp_path}/rota.db") as server,
        httpx.Client(base_url=server.url) as client,
    ):
        assert client.get("/ready").status_code == 200
        children = _children(server.process.pid)
        subprocess.run(["kill", "-9", *children], check=True)
        # Its successor is killed while it starts.
        eventually(lambda: set(_children(server.process.pid)) - set(children))
        subprocess.run(["kill", "-9", *_children(server.process.pid)], check=False)
        with httpx.Client(base_url=server.url, timeout=30) as again:
            assert again.get("/ready").status_code == 200
        assert "starting another" in server.log
        assert server.process.poll() is None


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_a_unix_socket_is_for_its_user_only(tmp_path: Path) -> None:
    socket = tmp_path / "rota.sock"
    with server_process(tmp_path, f"sqlite:///{tmp_path}/rota.db", "--uds", str(socket)) as server:
        assert server.url == f"unix:{socket}"
        assert socket.stat().st_mode & 0o777 == 0o600
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(socket))) as client:
            assert client.get("http://localhost/api/v1/me").json()["actor"] == "local"
        assert server.stop() == 0
        assert not socket.exists()


def test_case_34_other_addresses_need_a_token(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/rota.db"
    with server_process(tmp_path, database, "--host", "0.0.0.0") as server:
        assert server.process.wait(30) == 2
        server._reader.join()
        assert "rota tokens create NAME --role admin" in server.log
    made = subprocess.run(
        [sys.executable, "-m", "rota", "--url", database, "tokens", "create", "root", "--role", "admin"],
        capture_output=True,
        text=True,
        check=True,
    )
    with server_process(tmp_path, database, "--host", "0.0.0.0") as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{url}/api/v1/me").status_code == 401
        answer = httpx.get(f"{url}/api/v1/me", headers={"Authorization": f"Bearer {made.stdout.strip()}"})
        assert answer.json()["actor"] == "token:root"
        server.signal(signal.SIGINT)
        assert server.process.wait(30) == 0
