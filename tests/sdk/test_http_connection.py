"""Requests of the client over HTTP: tokens and namespaces, lost answers, problems, and what is refused at once."""

from __future__ import annotations

import asyncio
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from rota import (
    App,
    CommitUnknown,
    DefinitionError,
    Job,
    QueueFull,
    StoreMismatch,
    StoreUnavailable,
    UnknownExecution,
    UnknownJob,
    UsageError,
)
from rota.config import Settings, is_given, load
from rota.domain.access import Role
from rota.domain.job import Definition, Queue
from rota.ops import define
from rota.sdk import http_connection
from rota.sdk.app import registry_of
from rota.store import reader
from rota.testing import harness
from rota.views import execution as executions
from tests.api.jobs import ANY
from tests.api.listening import listening
from tests.api.server import Server, serving
from tests.api.working import work
from tests.support.waiting import eventually

Transport = Callable[[httpx.Request], httpx.Response]
SECRET = "rota_do_not_show_me"


class Place:
    """A server, its URL, and an app that reaches it."""

    def __init__(self, server: Server, url: str) -> None:
        self.server, self.url = server, url

    def app(self, name: str = "shop", **about: Any) -> App:
        return App(name, **{"url": self.url, **about})

    def count(self, job: str = "send", namespace: str = "default") -> int:
        return len(self.server.store.read(executions.rows, namespace, reader.Filter(job=job)).items)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with serving(f"sqlite:///{tmp_path}/rota.db") as server, listening(server) as url:
        for namespace in ("default", "acme"):
            known = [Definition(name="send", parameters=ANY), Definition(name="bulk", queue="narrow")]
            server.store.transact(define.register, namespace, "shop", known, [Queue(name="narrow", max_depth=1)])
        yield Place(server, url)


@pytest.fixture
def app(place: Place) -> Iterator[App]:
    app = place.app()
    yield app
    app.close()


def send_of(app: App) -> Job[..., str, str]:
    @app.job
    def send(to: str = "") -> str:
        return to

    return send


class Losing:
    """Answers are lost on the way, for the first requests that `wanted` describes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, count: int, method: str = "POST") -> None:
        self.left, self.seen = count, list[httpx.Request]()
        real = httpx.HTTPTransport.handle_request

        def handle(transport: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
            self.seen.append(request)
            answer = real(transport, request)
            if request.method == method and self.left > 0:
                self.left -= 1
                answer.read()
                raise httpx.ReadError("the connection broke")
            return answer

        monkeypatch.setattr(httpx.HTTPTransport, "handle_request", handle)


# --- Repetitions ---------------------------------------------------------------------------------------------------


def test_a_request_whose_answer_was_lost_has_one_effect(
    app: App, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    losing = Losing(monkeypatch, 2)
    x = send_of(app).enqueue("ann")
    keys = {request.headers["Idempotency-Key"] for request in losing.seen}
    assert (len(losing.seen), len(keys), x.created, place.count()) == (3, 1, True, 1)
    losing.left = 1
    many = send_of(place.app()).enqueue_many(["a", "b"])
    assert ([y.created for y in many], place.count()) == ([True, True], 3)
    losing.left = 1
    assert app.emit("order.paid", {"id": 1}).created
    losing.left = 1
    assert x.cancel() == "cancelled"
    losing.left = 1
    nightly = app.schedule(send_of(place.app()), name="nightly", cron="0 0 * * *")
    losing.left = 1
    assert nightly.pause()


def test_a_remove_whose_answer_was_lost_has_removed(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    nightly = app.schedule(send_of(app), name="nightly", cron="0 0 * * *")
    Losing(monkeypatch, 1, "DELETE")
    assert (nightly.remove(), nightly.remove()) == (True, False)


def test_an_effect_that_is_not_known_is_said_to_be(app: App, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_BUSY_S", "0.3")
    impatient = place.app()
    Losing(monkeypatch, 1000)
    with pytest.raises(CommitUnknown, match="it is not known whether the request had its effect"):
        send_of(impatient).enqueue()
    assert place.count() == 1
    impatient.close()


def test_a_server_that_is_away_for_a_moment(place: Place, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    real = httpx.HTTPTransport.handle_request
    left: list[Exception | httpx.Response] = [httpx.ConnectError("refused"), httpx.Response(502)]

    def handle(transport: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        what = left.pop(0) if left else None
        if isinstance(what, Exception):
            raise what
        return what or real(transport, request)

    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", handle)
    assert send_of(app).enqueue().created
    monkeypatch.setenv("ROTA_BUSY_S", "0.1")
    send = send_of(App("shop", url="http://127.0.0.1:1"))
    with pytest.raises(StoreUnavailable, match=r"http://127\.0\.0\.1:1 does not answer") as caught:
        send.enqueue()
    assert not isinstance(caught.value, CommitUnknown)


async def test_an_async_wait_is_repeated_too(place: Place, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rota.sdk.http_client.LONGEST_WAIT_S", 0.05)
    x = await send_of(app).aenqueue("ann")
    real, seen = httpx.AsyncHTTPTransport.handle_async_request, list[str]()

    async def handle(transport: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        if len(seen) == 1:
            raise httpx.ReadError("the connection broke")
        return await real(transport, request)

    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", handle)
    waiting = asyncio.create_task(x.aresult(60))
    await asyncio.to_thread(eventually, lambda: len(seen) > 3, what="several requests")
    assert await asyncio.to_thread(work, place.server.store, "send") == [x.id]
    assert await waiting == "done"


def test_after_a_fork(app: App, place: Place) -> None:
    send = send_of(app)
    send.enqueue()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            os._exit(0 if send.enqueue().created and send.enqueue().created else 1)
        except BaseException:
            traceback.print_exc()
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert (status, send.enqueue().created, place.count()) == (0, True, 4)


# --- Problems ------------------------------------------------------------------------------------------------------


def test_problems_are_the_errors_of_rota(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    @app.job(queue="narrow")
    def bulk() -> None: ...

    @app.job
    def elsewhere() -> None: ...

    bulk.enqueue()
    with pytest.raises(QueueFull, match="narrow") as caught:
        bulk.enqueue()
    assert caught.value.retry_after > timedelta(0)
    with pytest.raises(UnknownJob, match="elsewhere"):
        elsewhere.enqueue()
    with pytest.raises(UnknownJob):
        app.schedule(elsewhere, every="1h")


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (httpx.Response(200, text="<html>"), StoreMismatch, "is it a server of Rota"),
        (httpx.Response(404, text="<html>"), StoreUnavailable, "answered 404 without a reason"),
        (httpx.Response(301, headers={"Location": "https://b.c"}), StoreUnavailable, "answered 301"),
        (httpx.Response(500, json={"code": "internal", "detail": "no"}), StoreUnavailable, r"failed \(500\)"),
    ],
    ids=["another site", "another 404", "a redirect", "a fault"],
)
def test_another_kind_of_answer(
    app: App, monkeypatch: pytest.MonkeyPatch, answer: httpx.Response, error: type[Exception], words: str
) -> None:
    monkeypatch.setattr(httpx.HTTPTransport, "handle_request", lambda *_: answer)
    with pytest.raises(error, match=words):
        send_of(app).enqueue()


# --- Tokens and namespaces -----------------------------------------------------------------------------------------


def test_tokens(place: Place) -> None:
    admin = place.server.token(Role.ADMIN)
    with pytest.raises(UsageError, match="token") as caught:
        send_of(place.app()).enqueue()
    assert caught.value.code == "no_token"
    with pytest.raises(UsageError) as caught:
        send_of(place.app(token=SECRET)).enqueue()
    assert SECRET not in str(caught.value)
    producer, other = (place.app(token=place.server.token(Role.PRODUCER, name=name)) for name in ("ann", "bob"))
    x = send_of(producer).enqueue("ann")
    assert (x.status(), x.info().actor) == ("queued", "token:ann")
    with pytest.raises(UnknownExecution):
        other.handle(x.id).status()
    with pytest.raises(UsageError, match="operate") as caught:
        producer.dead.discard([x.id])
    assert caught.value.code == "wrong_scope"
    assert place.app(token=admin).handle(x.id).cancel() == "cancelled"


def test_the_namespace_is_that_of_the_token_unless_one_was_chosen(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = place.server.token(Role.AUTHOR, namespaces=("acme",))
    both = place.server.token(Role.AUTHOR, namespaces=("default", "acme"))
    send_of(place.app(token=alone)).enqueue()
    assert (place.count(), place.count(namespace="acme")) == (0, 1)
    with pytest.raises(UsageError):
        send_of(place.app(token=alone, namespace="default")).enqueue()
    send_of(place.app(token=both, namespace="default")).enqueue()
    monkeypatch.setenv("ROTA_NAMESPACE", "acme")
    monkeypatch.setenv("ROTA_TOKEN", both)
    send_of(place.app()).enqueue()
    assert (place.count(), place.count(namespace="acme")) == (1, 2)


def test_a_token_is_never_shown(tmp_path: Path) -> None:
    settings = Settings(url="https://a.example", token=SECRET)
    assert SECRET not in repr(settings)
    assert "token='***'" in repr(settings)
    app = App("shop", url="https://a.example", token=SECRET)
    assert SECRET not in f"{app!r} {registry_of(app).settings!r}"
    for wrong in (f"{SECRET}\n", f"{SECRET} x", "é"):
        with pytest.raises(DefinitionError, match="the setting token") as caught:
            App("shop", url="https://a.example", token=wrong)
        assert SECRET not in str(caught.value)
    (tmp_path / "rota.toml").write_text("token = 7\nnamespace = 'acme'\n")
    with pytest.raises(DefinitionError, match="the setting token") as caught:
        load({}, tmp_path, token=[SECRET])
    assert SECRET not in str(caught.value)
    assert (is_given("namespace", {}, tmp_path), is_given("url", {}, tmp_path)) == (True, False)
    assert (is_given("url", {"ROTA_URL": ""}, tmp_path), is_given("url", {"ROTA_URL": "x"}, tmp_path)) == (False, True)


# --- What is refused at once ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["https://", "http://a:b", "http://a:0", "https://a.example?x=1", "https://a/#b"])
def test_a_url_that_is_none_of_a_server(url: str) -> None:
    with pytest.raises(DefinitionError, match="is no URL of a server"):
        App("shop", url=url)


def test_a_url_has_no_password() -> None:
    with pytest.raises(DefinitionError, match=r"token= or ROTA_TOKEN") as caught:
        App("shop", url=f"https://ann:{SECRET}@a.example")
    assert SECRET not in str(caught.value)


def test_httpx_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    app = App("shop", url="https://a.example")
    with pytest.raises(UsageError, match=r'pip install "rota\[http\]"'):
        send_of(app).enqueue()
    with pytest.raises(UsageError, match=r'pip install "rota\[http\]"'):
        asyncio.run(app.handle("0197a3c2-0000-7000-8000-000000000000").aresult())


def test_what_needs_the_database_says_so(app: App) -> None:
    with pytest.raises(DefinitionError, match=r"is a server of Rota, and this needs the database itself"):
        registry_of(app).connection.store()
    with pytest.raises(UsageError, match="a harness has a database of its own"), harness(app):
        pass


def test_names_are_parts_of_a_path() -> None:
    assert [http_connection.segment(text) for text in ("a:b", "..", "a/b?c", ".")] == [
        "a:b",
        "%2E%2E",
        "a%2Fb%3Fc",
        "%2E",
    ]
