"""HTTP jobs on their whole way: from an enqueue, the command line, a schedule or SQL to what the server gets."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import psycopg
import pytest

from rota import App, ArgumentsError
from rota.sdk.app import registry_of
from rota.testing import harness
from tests.cli.shell import Shell
from tests.support.databases import fresh_database
from tests.support.waiting import eventually


class Hook:
    """A server that keeps what it was sent."""

    def __init__(self) -> None:
        got: list[tuple[str, object]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got.append((self.path, json.loads(body)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self.got = got
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.server.shutdown()
    hook.server.server_close()


def declared(hook: Hook, url: str | None = None) -> App:
    app = App("hooks", url=url)
    app.http("order", f"{hook.url}/orders/{{order}}", allow=["127.0.0.0/8"], retry=None)
    return app


def test_what_is_enqueued_is_what_is_sent(hook: Hook) -> None:
    app, got = declared(hook), list[httpx.Request]()

    def answer(request: httpx.Request) -> httpx.Response:
        got.append(request)
        return httpx.Response(200)

    with harness(app, http=answer) as rota:
        x = app.jobs["order"].enqueue(order=42, note={"a": [1]}, others="x")
        rota.run_until_idle()
        assert x.status() == "success"
    sent = [(request.url.path, json.loads(request.content)) for request in got]
    assert sent == [("/orders/42", {"order": 42, "note": {"a": [1]}, "others": "x"})]


def test_what_the_url_needs_must_be_given(hook: Hook) -> None:
    app = declared(hook)
    with harness(app), pytest.raises(ArgumentsError, match="'order'"):
        app.jobs["order"].enqueue(note=1)
    with harness(app), pytest.raises(ArgumentsError, match="takes"):
        app.jobs["order"].enqueue(1)


def test_from_the_command_line_and_a_schedule(shell: Shell, worker: Callable[..., None], hook: Hook) -> None:
    common = f'http = "{hook.url}/{{order}}"\nallow = ["127.0.0.0/8"]\n'
    tick = "arguments = { order = 7, by = 'schedule' }\nevery = '1s'\n"
    (shell.folder / "jobs.toml").write_text(f"[jobs.once]\n{common}[jobs.tick]\n{common}{tick}")
    worker(app="jobs.toml")
    shell.ok("enqueue", "--load", "jobs.toml", "once", "order=8", "note=x", "--wait")
    assert ("/8", {"order": 8, "note": "x"}) in hook.got
    eventually(lambda: ("/7", {"order": 7, "by": "schedule"}) in hook.got)
    assert "missing argument 'order'" in shell.refused("enqueue", "once", "note=x")
    assert "once(order: str | int | float | bool, …)" in shell.ok("jobs").out


def test_from_sql(hook: Hook) -> None:
    url = fresh_database()
    app = declared(hook, url)
    registry_of(app).connection.store()
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("""SELECT rota.enqueue('order', '{"order": 1, "note": 2}')""").fetchone()
        assert row is not None
        assert app.handle(str(row[0])).status() == "queued"
        with pytest.raises(psycopg.Error, match="missing argument `order`"):
            connection.execute("""SELECT rota.enqueue('order', '{"note": 2}')""")
    app.close()
